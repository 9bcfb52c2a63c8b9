"""Removes a topology's keys, or what an earlier drop left, without touching a topology that is started meanwhile.

Other keys below its hash tag are left: see `OwnedKeys`. Without a control record it is unknown which states were the
topology's, so only its records are deleted, and the states that the caller names.

The drop becomes the topology's last owner. It takes the fence, so that no coordinator can write any more, deletes the
state keys under that fence, then txbatch's own keys, the control key last. A delayed call finds another fence, or a
topology started since, and deletes nothing.

The last call names every key that the topology may have, whether it exists or not, except keys of parts. An append-only
file that was cut in the middle of a write may hold its first commands, to be applied at the next restart (see
functions/drop.lua): what they would create must not be there in the topology's next life.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from state.errors import FencedError, StateRefusedError
from state.fault_points import reached
from state.keys import Keys
from state.records.declared_states import OwnedKeys, record_types
from state.redis_client.connection import RedisConnection, text_of
from state.redis_owner.refusals import refuse_shard
from state.troubles import Trouble

BEGIN_TRIES = 20
KEYS_PER_CALL = 500


@dataclass(frozen=True, slots=True)
class Dropped:
    """The result of a drop.

    Attributes:
        deleted: how many keys were deleted.
        left: the keys below the topology's tag that are not its own, sorted.
    """

    deleted: int
    left: tuple[str, ...]


def drop_topology(
    connection: RedisConnection,
    keys: Keys,
    *,
    nonce: str,
    also: Iterable[str] = (),
    shards: Sequence[RedisConnection] = (),
    described: str = "",
) -> Dropped:
    """Deletes every key that a topology owns; called by `RedisTopology.drop`.

    Args:
        connection: a connection to the server.
        keys: the keys of the topology, or of a shard.
        nonce: 128 random bits in hexadecimal, new for every drop.
        also: names of states to delete even without a record of them.
        shards: a connection to each shard of the topology; shards are dropped before home.
        described: the description to use if none is stored here; for a shard, home's.

    Raises:
        StateRefusedError: the user lacks a right, the topology was started again meanwhile, or the server has lost a
            part of this drop (then drop it again).
        FencedError: other coordinators keep taking over at the same time.
    """
    refuse_shard(connection, keys)
    own = [keys.control, *([keys.staged, keys.decisions] if keys.is_shard else [keys.metadata, keys.receipts])]
    found, also = _scan(connection, keys.pattern), tuple(also)
    if not shards and not any(OwnedKeys.of(described, also).has(keys, key) for key in found):
        return Dropped(0, tuple(sorted(found)))
    reached("drop.scanned")
    fence, topology = _begin(connection, keys, own, nonce)
    reached("drop.fenced")
    topology = topology or described
    gone = [
        drop_topology(each, keys.shard(number), nonce=nonce, also=also, described=topology)
        for number, each in enumerate(shards)
    ]
    found |= _scan(connection, keys.pattern)  # again: the last owner may have written until it was fenced
    if keys.is_shard and int(connection.call("EXISTS", keys.other_control)):
        topology, also = "", ()  # a topology of that name is there, so no state there belongs to this shard
    owned = OwnedKeys.of(topology, also)
    deleted = {key for key in found if owned.has(keys, key)}
    states = sorted(deleted - set(own))
    calls = 0
    for start in range(0, len(states), KEYS_PER_CALL):
        batch, calls = states[start : start + KEYS_PER_CALL], calls + 1
        _check(keys, connection.function("drop_keys", str(1 + len(batch)), keys.control, *batch, fence, str(calls)))
        reached("drop.states_deleted")
    ours = dict.fromkeys([*own, *record_types(keys), *map(keys.state, owned.whole())])
    _check(keys, connection.function("drop_end", str(len(ours)), *ours, fence, str(calls)))
    reached("drop.ended")
    left = chain(found - deleted, *(each.left for each in gone))
    return Dropped(len(deleted) + sum(each.deleted for each in gone), tuple(sorted(left)))


def _begin(connection: RedisConnection, keys: Keys, own: list[str], nonce: str) -> tuple[str, str]:
    """Takes the fence; returns the fence and the stored description, both "" without a control hash."""
    previous = ""
    for number in range(BEGIN_TRIES):
        token = f"{nonce}-{number}"  # see `RedisStore.acquire`
        status, fence, *topology = map(text_of, connection.function("drop_begin", "3", *own, previous, token))
        if status != "RACED":
            return fence, "".join(topology)
        previous = fence
    raise FencedError(keys.topology_id)


def _scan(connection: RedisConnection, pattern: str) -> set[str]:
    return set(map(text_of, chain.from_iterable(connection.keys_like(pattern))))


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
