"""Whether a run of a topology is connected to a server: each gives its connection a name.

Only people are told. Nothing is decided by it, so a user who may not name or list connections loses nothing
else, and a run that has had to connect again since it began is not counted.
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
    """Names the connection of a run; called once it owns the topology."""
    try:
        connection.call("CLIENT", "SETNAME", _name(keys))
    except StateError as error:
        _LOG.debug("the run's connection has no name: %s", error)


def connected_runs(connection: RedisConnection, keys: Keys) -> int:
    """How many runs of the topology are connected, as far as the server tells; 0 if it does not."""
    try:
        listed = connection.call("CLIENT", "LIST")
    except StateError as error:
        _LOG.debug("connections cannot be listed: %s", error)
        return 0
    lines = bytes(listed).splitlines()
    return sum(found[1].decode() == _name(keys) for line in lines if (found := _NAME.search(line)))


def _name(keys: Keys) -> str:
    return f"txbatch:run:{keys.topology_id}"
