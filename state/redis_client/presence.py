"""Tells whether a run of a topology is connected to a server, by the name each run gives its connection.

This is for people to read, and with the run's pulse it decides in which order a new run starts things. A user without
the right to name or list connections loses nothing else, and a run that has reconnected is not counted.
"""

from __future__ import annotations

import logging
import re
from collections import Counter

from state.errors import StateError
from state.keys import Keys
from state.redis_client.connection import RedisConnection

_LOG = logging.getLogger("txbatch")
PREFIX = "txbatch:run:"
_NAME = re.compile(rb"(?:^| )name=(\S*)")


def announce_run(connection: RedisConnection, keys: Keys) -> None:
    """Names a run's connection; called once, when the run owns the topology."""
    try:
        connection.call("CLIENT", "SETNAME", _name(keys))
    except StateError as error:
        _LOG.debug("the run's connection could not be named: %s", error)


def connected_runs(connection: RedisConnection, keys: Keys) -> int:
    """Returns how many runs of the topology are connected, 0 if the server does not say."""
    return connected_topologies(connection)[keys.topology_id]


def connected_topologies(connection: RedisConnection) -> Counter[str]:
    """Returns topology id -> how many of its runs are connected; empty if the server does not say."""
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
