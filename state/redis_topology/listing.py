"""Finds the topologies on a server with plain commands, so it needs neither the function library nor their ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain

from state.errors import StateRefusedError, TopologyError
from state.keys import Keys
from state.printable import said_by
from state.records.run_pulse import RunPulse, owners
from state.redis_client.connection import RedisConnection, text_of
from state.redis_client.presence import connected_topologies
from state.redis_topology.pulse import read_pulse

_CONTROL = re.compile(r"\{([^{}]*)\}:txbatch:control", re.DOTALL)
CONTROL_PATTERN = "{*}:txbatch:control"


@dataclass(frozen=True, slots=True)
class ListedTopology:
    """A topology that a server holds.

    Attributes:
        topology_id: its id.
        committed: last committed txid as stored, "" if it cannot be read.
        fence: of its owner.
        is_dropping: a drop was begun and not finished.
        pulse: what the run that owns it has told, None if it tells nothing.
        connected: its runs that are connected, as far as the server says.
        fault: why it cannot be read, "" if it can.
    """

    topology_id: str
    committed: str = ""
    fence: str = ""
    is_dropping: bool = False
    pulse: RunPulse | None = None
    connected: int = 0
    fault: str = ""


def list_topologies(connection: RedisConnection) -> list[ListedTopology]:
    """Returns the topologies of a server, by id; changes nothing.

    Raises:
        StateRefusedError: the server refuses to be searched.
        StateUnreachableError: no answer in time.
    """
    connected = connected_topologies(connection)
    return [_listed(connection, topology_id, connected.get(topology_id, 0)) for topology_id in _ids(connection)]


def _ids(connection: RedisConnection) -> list[str]:
    keys = chain.from_iterable(connection.scanned("SCAN", match=CONTROL_PATTERN))
    return sorted({named[1] for key in keys if (named := _CONTROL.fullmatch(text_of(key)))})


def _listed(connection: RedisConnection, topology_id: str, connected: int) -> ListedTopology:
    try:
        keys = Keys(topology_id)
        found = connection.call("HMGET", keys.control, "committed", "fence", "dropping")
        pulse = read_pulse(connection, keys)
    except (StateRefusedError, TopologyError) as error:  # no rights on its keys, or they are somebody else's
        return ListedTopology(topology_id, connected=connected, fault=said_by(error.__cause__ or error))
    committed, fence = ("" if item is None else text_of(item) for item in found[:2])
    return ListedTopology(topology_id, committed, fence, found[2] is not None, owners(pulse, fence), connected)
