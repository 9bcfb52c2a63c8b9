"""Memory and open files of all processes of a run, read from /proc (Linux only)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Role(Enum):
    """The role of a process in a run."""

    DRIVER = "driver"
    JAVA = "java"
    WORKERS = "workers"
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class Usage:
    """What all processes of one role use at one moment.

    Attributes:
        process_count: number of processes.
        resident_bytes: sum of their resident memory; a page that workers share counts once per worker.
        open_files: sum of their open descriptors.
    """

    process_count: int = 0
    resident_bytes: int = 0
    open_files: int = 0

    def plus(self, other: Usage) -> Usage:
        """Returns the sum of both."""
        return Usage(
            self.process_count + other.process_count,
            self.resident_bytes + other.resident_bytes,
            self.open_files + other.open_files,
        )


def usage_by_role(driver_pid: int) -> dict[Role, Usage]:
    """Returns what a driver and its descendants use now, without processes that end meanwhile."""
    found: dict[Role, Usage] = {}
    for pid in _with_descendants(driver_pid):
        role = Role.DRIVER if pid == driver_pid else _role_of(pid)
        if role is None:
            continue
        try:
            resident = int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE_BYTES
            usage = Usage(1, resident, len(os.listdir(PROC / str(pid) / "fd")))  # noqa: PTH208 - names suffice
        except OSError:
            continue
        found[role] = found.get(role, Usage()).plus(usage)
    return found


def processor_seconds(driver_pid: int) -> float:
    """Returns the processor time that a driver and its living descendants have used since each began."""
    return sum(_processor_seconds(pid) for pid in _with_descendants(driver_pid))


def processor_seconds_by_role(driver_pid: int) -> dict[Role, float]:
    """Returns the same by role, without helpers."""
    found: dict[Role, float] = {}
    for pid in _with_descendants(driver_pid):
        role = Role.DRIVER if pid == driver_pid else _role_of(pid)
        if role is not None:
            found[role] = found.get(role, 0.0) + _processor_seconds(pid)
    return found


def _processor_seconds(pid: int) -> float:
    """Returns what a process has used; 0 if it has ended meanwhile."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return 0.0
    user, system = stat[stat.rindex(")") + 2 :].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _role_of(pid: int) -> Role | None:
    """Returns the role of a descendant; None for helpers, which are short-lived or idle."""
    try:
        program = (PROC / str(pid) / "comm").read_text().strip()
        arguments = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    if program == "java":
        return Role.JAVA
    if program in ("valkey-server", "redis-server"):
        return Role.SERVER
    return Role.WORKERS if b"pyspark.daemon" in arguments else None


def _with_descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found
