"""Removes a topology, or its remains, from a server, without touching one that is started meanwhile.

The drop becomes the topology's last owner. It takes the fence, so that no coordinator can write any more, deletes
the state keys under that fence, and then our own keys, the control key last. A delayed call finds another fence,
or a topology started since, and deletes nothing.

The last call names every key that the topology may have, whether it exists or not, except those of parts. An
append-only file that was cut in the middle of a write may hold its first commands, to be applied at the next restart
(see functions/drop.lua): what they would create must not be there in the topology's next life.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.errors import FencedError, StateRefusedError
from state.fault_points import reached
from state.keys import Keys
from state.redis_client.connection import RedisConnection, text_of
from state.troubles import Trouble

BEGIN_TRIES = 20
KEYS_PER_CALL = 500


def drop_topology(connection: RedisConnection, keys: Keys, *, nonce: str) -> int:
    """Deletes every key of a topology and returns how many there were; called by `RedisTopology.drop`.

    `nonce` is 128 random bits in hexadecimal, new for every drop.

    Raises:
        StateRefusedError: the user lacks a right, the topology was started again meanwhile, or the server has lost a
            part of this drop; drop it again.
        FencedError: other coordinators keep taking over at the same time.
    """
    own = [keys.control, keys.metadata, keys.receipts]
    found = _scan(connection, keys.pattern)
    if not found:
        return 0
    reached("drop.scanned")
    fence, topology = _begin(connection, keys, own, nonce)
    reached("drop.fenced")
    found |= _scan(connection, keys.pattern)  # again: the last owner may have written until it was fenced
    states = sorted(found - {name.encode() for name in own})
    calls = 0
    for start in range(0, len(states), KEYS_PER_CALL):
        batch, calls = states[start : start + KEYS_PER_CALL], calls + 1
        _check(keys, connection.function("drop_keys", str(1 + len(batch)), keys.control, *batch, fence, str(calls)))
        reached("drop.states_deleted")
    ours = [*own, *_possible(keys, topology)]
    _check(keys, connection.function("drop_end", str(len(ours)), *ours, fence, str(calls)))
    reached("drop.ended")
    return len(found)


def _begin(connection: RedisConnection, keys: Keys, own: list[str], nonce: str) -> tuple[str, str]:
    """Takes the fence; returns it and the description; "" if there is no control hash to take them from."""
    previous = ""
    for number in range(BEGIN_TRIES):
        token = f"{nonce}-{number}"  # see `RedisStore.acquire`
        status, fence, *topology = map(text_of, connection.function("drop_begin", "3", *own, previous, token))
        if status != "RACED":
            return fence, "".join(topology)
        previous = fence
    raise FencedError(keys.topology_id)


def _possible(keys: Keys, topology: str) -> list[str]:
    """Returns the keys that a topology of this description may have, but for parts and what a drop names anyway."""
    try:
        states = [keys.state(name) for name in json.loads(topology or "{}").get("states", {})]
    except (ValueError, AttributeError):  # not ours: the drop removes what is there, and no more
        states = []
    return [keys.history, keys.quarantine, keys.pulse, keys.stories, keys.state(DEAD_LETTERS_STATE), *states]


def _scan(connection: RedisConnection, pattern: str) -> set[bytes]:
    return set(chain.from_iterable(connection.scanned("SCAN", match=pattern)))


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
