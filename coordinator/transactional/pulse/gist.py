"""Cuts what failures and errors say to one line that tells the cause. Pure."""

from __future__ import annotations

from state.printable import one_line

GIST_LIMIT = 300
TRACEBACK = "Traceback (most recent call last):"


def gist(text: str) -> str:
    """Returns the first line of a message; of a traceback, which begins with what tells least, the last one."""
    lines = text.strip().splitlines() or [""]
    head, is_traceback, _ = lines[0].partition(TRACEBACK)
    said = f"{head}{lines[-1].strip()}" if is_traceback else lines[0]
    return one_line(said, GIST_LIMIT)
