"""Whether a run is present: connected to its server under its connection's name, or gone as a process.

This is for people to read; with the run's pulse it also decides the order in which a new run starts things. A user
without the right to name or list connections loses nothing else, and a run that has reconnected is not counted. A
process id is valid on one machine, until the next boot, and in one namespace: a container has its own, even if it
shares the host's name. Linux identifies all three; elsewhere nothing is concluded.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from pathlib import Path

from state.errors import StateError
from state.keys import Keys
from state.redis_client.connection import RedisConnection

_LOG = logging.getLogger("txbatch.redis")
PREFIX = "txbatch:run:"
_NAME = re.compile(rb"(?:^| )name=(\S*)")


def announce_run(connection: RedisConnection, keys: Keys) -> None:
    """Names a run's connection; called once, when the run owns the topology."""
    try:
        connection.call("CLIENT", "SETNAME", _name(keys))
    except StateError as error:
        _LOG.debug("the run's connection could not be named: %s", error)


def retire_run(connection: RedisConnection, keys: Keys) -> None:
    """Removes the name from a connection that outlives its run, unless it now has another run's name."""
    try:
        if bytes(connection.call("CLIENT", "GETNAME") or b"") == _name(keys).encode():
            connection.call("CLIENT", "SETNAME", "")
    except StateError as error:
        _LOG.debug("the run's connection kept its name: %s", error)


def connected_runs(connection: RedisConnection, keys: Keys) -> int:
    """Returns how many runs of the topology are connected, 0 if the server does not list connections."""
    return connected_topologies(connection)[keys.topology_id]


def connected_topologies(connection: RedisConnection) -> Counter[str]:
    """Returns topology id -> how many of its runs are connected; empty if the server does not list connections."""
    try:
        listed = connection.call("CLIENT", "LIST")
    except StateError as error:
        _LOG.debug("connections could not be listed: %s", error)
        return Counter()
    names = (
        found[1].decode("utf-8", "replace") for line in bytes(listed).splitlines() if (found := _NAME.search(line))
    )
    return Counter(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))


def _name(keys: Keys) -> str:
    return f"{PREFIX}{keys.topology_id}"


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")


def pid_space() -> str:
    """Returns the boot and namespace in which this process's ids are valid, "" if the system does not show them."""
    try:
        return f"{_BOOT_ID.read_text(encoding='ascii').strip()} {_NAMESPACE.readlink()}"
    except (OSError, ValueError):
        return ""


def is_gone(pid: int, space: str) -> bool:
    """Returns whether a process has certainly ended; it counts as alive if another process has its id.

    `space` is the `pid_space` of that process.
    """
    if not space or space != pid_space() or not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's process exists
        return False
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"
        )
    except (OSError, IndexError):
        return False
