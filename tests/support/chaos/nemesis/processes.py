"""Processes by their id: who descends from whom, and signals to exactly one of them."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def parent_of(pid: int) -> int | None:
    """The parent of a process; None if it has ended, even if nobody has waited for it yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[1])


def descendants_of(pid: int) -> list[int]:
    """Children, their children, and so on; those of lower generations first."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (parent := parent_of(int(entry.name))) is not None:
            parents[int(entry.name)] = parent
    found, generation = [], [pid]
    while generation:
        generation = [child for child, parent in parents.items() if parent in generation]
        found += generation
    return found


def command_of(pid: int) -> list[str]:
    """Program and arguments; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def java_of(pid: int) -> int | None:
    """The Java process that a driver has started, if it has."""
    for child in descendants_of(pid):
        command = command_of(child)
        if command and command[0].endswith("java"):
            return child
    return None


def python_workers_of(pid: int) -> list[int]:
    """The forks of pyspark's daemons below a process."""
    daemons = [child for child in descendants_of(pid) if "pyspark.daemon" in command_of(child)]
    return [child for child in daemons if parent_of(child) in daemons]


def marked(variable: str, mark: str) -> list[int]:
    """Other processes with this mark in their environment."""
    needle, found = f"{variable}={mark}".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            if entry.name.isdecimal() and needle in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def send(pid: int, number: signal.Signals) -> bool:
    """Sends a signal; False if the process has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
