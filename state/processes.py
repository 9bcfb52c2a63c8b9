"""Tells whether a process that has told its id is gone: only where the id means the same process.

A process id counts on one machine, from one boot to the next, and in one namespace of ids: a container has its own,
even if it shares the host's name. Linux names all three; elsewhere nothing is concluded.
"""

from __future__ import annotations

import os
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def pid_space() -> str:
    """Returns where the process ids that this process sees count, "" if the system does not tell."""
    try:
        return f"{_BOOT_ID.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
    except (OSError, ValueError):
        return ""


def is_gone(pid: int, space: str) -> bool:
    """Returns whether a process has certainly ended; one whose id was given to another counts as there.

    Args:
        pid: of the process.
        space: what `pid_space` returned in it.
    """
    if not space or space != pid_space() or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's: it is there
        return False
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Returns whether the process has ended and its parent has not asked how."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"
        )
    except (OSError, IndexError):
        return False
