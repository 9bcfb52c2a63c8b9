"""Asks this process who it is, for the pulse of its run (driver)."""

from __future__ import annotations

import getpass
import os
import platform
import socket
from importlib.metadata import PackageNotFoundError, version

from state.processes import pid_space
from state.records.run_pulse import RunIdentity


def identity_of_this_process(
    *, fence: str, started_at: float, master: str, durability: str, server_can_lose: str, history: int
) -> RunIdentity:
    """Returns who runs; the arguments are attributes of `RunIdentity` that only the run knows."""
    versions = {"python": platform.python_version()}
    versions |= {name: found for name in ("pyspark", "txbatch") if (found := _version(name))}
    return RunIdentity(
        fence=fence,
        host=socket.gethostname(),
        pid=os.getpid(),
        user=_user(),
        started_at=round(started_at, 3),
        versions=versions,
        master=master,
        durability=durability,
        server_can_lose=server_can_lose,
        history=history,
        pid_space=pid_space(),
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return str(os.getuid())
