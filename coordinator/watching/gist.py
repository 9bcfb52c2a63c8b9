"""Cuts what failures and errors say to one line that tells the cause. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from state.printable import one_line

GIST_LIMIT = 300
PLACE_LIMIT = 150
"""Of that, what the line before a traceback may take: the tuple in it may be long, and the cause follows it."""
TRACEBACK = "Traceback (most recent call last):"


def gist(text: str) -> str:
    """Returns the first line of a message; with a traceback, the line that says what was raised follows it."""
    lines = text.strip().splitlines() or [""]
    head, is_traceback, _ = lines[0].partition(TRACEBACK)
    if is_traceback:
        return one_line(f"{head}{_raised(lines)}", GIST_LIMIT)
    if len(lines) > 1 and head.endswith(":"):  # as of a UserCodeError: where, and then what
        return f"{one_line(head, PLACE_LIMIT)} {one_line(_raised(lines), GIST_LIMIT - PLACE_LIMIT)}"
    return one_line(head, GIST_LIMIT)


def _raised(lines: Sequence[str]) -> str:
    """Returns the line after the last frame of a traceback: an exception may say several lines."""
    frames = [number for number, line in enumerate(lines) if line.startswith("  ")]
    after = lines[frames[-1] + 1 :] if frames else ()
    return (after or lines[-1:])[0].strip()
