"""Tells whether a run of a topology is connected to a server, by the name each run gives its connection.

This is for people to read; no decision depends on it. A user without the right to name or list connections therefore
loses nothing else, and a run that has reconnected is not counted.
"""

from __future__ import annotations

import logging
import re

from state.errors import StateError
from state.keys import Keys
from state.redis_connection import RedisConnection

_LOG = logging.getLogger("txbatch")
_NAME = re.compile(rb"(?:^| )name=(\S*)")


def announce_run(connection: RedisConnection, keys: Keys) -> None:
    """Names a run's connection; called once, when the run owns the topology."""
    try:
        connection.call("CLIENT", "SETNAME", _name(keys))
    except StateError as error:
        _LOG.debug("the run's connection could not be named: %s", error)


def connected_runs(connection: RedisConnection, keys: Keys) -> int:
    """Returns how many runs of the topology are connected, 0 if the server does not say."""
    try:
        listed = connection.call("CLIENT", "LIST")
    except StateError as error:
        _LOG.debug("connections could not be listed: %s", error)
        return 0
    lines = bytes(listed).splitlines()
    return sum(found[1].decode() == _name(keys) for line in lines if (found := _NAME.search(line)))


def _name(keys: Keys) -> str:
    return f"txbatch:run:{keys.topology_id}"
