"""Removes a topology, or its remains, from a server, without touching one that is started meanwhile.

The drop becomes the topology's last owner. It takes the fence, so that no coordinator can write any more, deletes
the state keys under that fence, and then our own keys, the control key last. A delayed call finds another fence,
or a topology started since, and deletes nothing.
"""

from __future__ import annotations

from typing import Any

from state.errors import FencedError, StateRefusedError
from state.fault_points import reached
from state.keys import Keys
from state.redis_client.connection import RedisConnection
from state.redis_client.replies import text_of
from state.troubles import Trouble

BEGIN_TRIES = 20
KEYS_PER_CALL = 500


def drop_topology(connection: RedisConnection, keys: Keys, *, nonce: str) -> int:
    """Deletes every key of a topology and returns how many there were; called by `RedisStore.drop`.

    Args:
        connection: to the topology's server.
        keys: of the topology.
        nonce: 128 random bits in hexadecimal, new for every drop.

    Raises:
        StateRefusedError: the user lacks a right, the topology was started again meanwhile, or the server has lost a
            part of this drop; drop it again.
        StateUnreachableError: no answer in time; drop the topology again.
        FencedError: other coordinators keep taking over at the same time.
    """
    own = [keys.control, keys.metadata, keys.receipts]
    found = _scan(connection, keys.pattern)
    if not found:
        return 0
    reached("drop.scanned")
    fence = _begin(connection, keys, own, nonce)
    reached("drop.fenced")
    found |= _scan(connection, keys.pattern)  # again: the last owner may have written until it was fenced
    states = sorted(found - {name.encode() for name in own})
    calls = 0
    for start in range(0, len(states), KEYS_PER_CALL):
        batch, calls = states[start : start + KEYS_PER_CALL], calls + 1
        _check(keys, connection.function("drop_keys", str(1 + len(batch)), keys.control, *batch, fence, str(calls)))
        reached("drop.states_deleted")
    _check(keys, connection.function("drop_end", "3", *own, fence, str(calls)))
    reached("drop.ended")
    return len(found)


def _begin(connection: RedisConnection, keys: Keys, own: list[str], nonce: str) -> str:
    """Takes and returns the fence; "" if there is no control hash to take it from."""
    previous = ""
    for _ in range(BEGIN_TRIES):
        status, fence = map(text_of, connection.function("drop_begin", "3", *own, previous, nonce))
        if status != "RACED":
            return fence
        previous = fence
    raise FencedError(keys.topology_id)


def _scan(connection: RedisConnection, pattern: str) -> set[bytes]:
    found: set[bytes] = set()
    cursor = "0"
    while True:  # bounded: SCAN ends after one pass over the server's keys
        reply = connection.call("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
        found.update(reply[1])
        cursor = text_of(reply[0])
        if cursor == "0":
            return found


def _check(keys: Keys, reply: list[Any]) -> None:
    status, sentence = map(text_of, reply)
    if status == "REGRESSED":
        raise StateRefusedError(
            f"topology {keys.topology_id!r}: {sentence}; it has returned to an earlier state: drop the topology again"
        ).about(Trouble.REGRESSED)
    if status not in ("OK", "ALREADY"):
        raise StateRefusedError(
            f"topology {keys.topology_id!r} was started again while it was being dropped ({sentence}); "
            "stop that run, then drop the topology again"
        ).about(Trouble.DROPPING)
