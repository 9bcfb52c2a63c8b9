"""Reads everything that the servers hold of a topology over many slots, as `RedisRecords` does of one in its own.

What is read of several shards is of one transaction if every shard has applied what home has decided, and home has
decided nothing more when the last shard was read: a decision is the only thing that lets a shard change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain
from typing import Any

from state.errors import StateRefusedError
from state.keys import RESERVED_NAME, is_chain, split_member
from state.records.declared_states import DescribedState
from state.records.stored_records import Content, Entries, StateImage, StoredPiece, StreamPosition
from state.redis_client.connection import RedisConnection, pairs_of
from state.redis_topology.all_records import Commands, RedisRecords, Sought, WholeReply
from state.redis_topology.refusals import TORN_REMEDY
from state.troubles import Trouble
from state.values.shards import SPREAD_KINDS, shard_of
from state.values.state_kind import KeptEnd, StateKind

Read = tuple[dict[str, str], dict[str, WholeReply]]
"""A control hash, and whole states by name."""
MOMENT_TRIES = 100
PAUSE_S = 0.01
"""Between two tries to read all shards at one transaction: about as long as a group takes to be applied."""


class ShardedRecords(RedisRecords):
    """What the servers hold of one topology (driver).

    Args:
        home: reads the topology's own slot.
        connections: to each shard, in order.
    """

    def __init__(
        self, home: RedisRecords, connections: Sequence[RedisConnection], *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(home._connection, home.keys)  # noqa: SLF001 - of the same class
        self._home, self._pause = home, pause
        self.shards = tuple(RedisRecords(each, home.keys.shard(number)) for number, each in enumerate(connections))

    # One state

    def names_of(self, state: DescribedState) -> list[str]:
        return sorted({name for shard in self.shards for name in shard.names_of(state)})

    def expires_ms(self, name: str) -> int | None:
        if _is_record(name):
            return self._home.expires_ms(name)
        return max((at for shard in self.shards if (at := shard.expires_ms(name)) is not None), default=None)

    def position(self, name: str) -> StreamPosition | None:
        return self._of(name, StateKind.STREAM).position(name)

    def with_expiries(self, piece: StoredPiece) -> StoredPiece:
        entries: Entries = []
        expiries: dict[bytes, int] = {}
        for shard in self.shards:
            found = shard.with_expiries(piece)
            entries += found.entries
            expiries |= found.expiries
        return replace(piece, entries=entries, expiries=expiries)

    def entries(self, name: str, kind: StateKind) -> Iterator[Entries]:
        if _is_record(name):
            yield from self._home.entries(name, kind)
            return
        for shard in self._holding(name, kind):
            yield from shard.entries(name, kind)

    def ranked(self, name: str, *, from_lowest: bool) -> Iterator[Entries]:
        """Yields members and scores of a sorted set by rank; each shard keeps as many as the whole set is to have."""
        ranked = (chain.from_iterable(shard.ranked(name, from_lowest=from_lowest)) for shard in self.shards)
        for entry in merge(*ranked, key=_score, reverse=not from_lowest):
            yield [entry]

    def distinct_count(self, name: str) -> int:
        return self._of(name, StateKind.HYPERLOGLOG).distinct_count(name)

    def entry(self, name: str, kind: StateKind, field: bytes) -> bytes | None:
        return self.shards[shard_of(name, kind, field, len(self.shards))].entry(name, kind, field)

    def entry_counts(self, kinds: Mapping[str, StateKind]) -> tuple[str, list[int]]:
        committed, _ = self._home.entry_counts({})
        counts = [shard.entry_counts(kinds)[1] for shard in self.shards]
        return committed, [sum(each) for each in zip(*counts, strict=True)]

    def entry_count(self, sought: Sought) -> int:
        states = {name: kind for name, kind in sought.kinds.items() if not _is_record(name)}
        records = replace(sought, kinds={name: kind for name, kind in sought.kinds.items() if _is_record(name)})
        return self._home.entry_count(records) + sum(self.entry_counts(states)[1])

    # All states at one moment

    def moment(self) -> tuple[str, ...]:
        """Returns the moment of home; while a shard has not applied what home has decided, one that never was."""
        home = self._home.moment()
        return home if self._have_applied(self._committed(self._home)) else ("", *home)

    def at_moment(self, sought: Sought, commands: Commands) -> Read:
        records = {name: kind for name, kind in sought.kinds.items() if _is_record(name)}
        for _ in range(MOMENT_TRIES):
            control, found = self._home.at_moment(replace(sought, kinds=records, growing=()), commands)
            pieces = [self._of_shard(shard, sought, commands) for shard in self.shards]
            if any(own.get("begun") != own.get("ended") for own, _ in pieces):
                raise StateRefusedError(f"a shard of topology {self.keys.topology_id!r} is torn: {TORN_REMEDY}").about(
                    Trouble.TORN
                )
            have_applied = all(own.get("committed") == control.get("committed") for own, _ in pieces)
            if have_applied and self._home.moment() == (control.get("generation", ""), control.get("revision", "")):
                return control, found | _joined(whole for _, whole in pieces)
            self._pause(PAUSE_S)
        raise StateRefusedError(
            f"topology {self.keys.topology_id!r} commits faster than its {len(self.shards)} shards can be read at one "
            "transaction; stop its run, or read what you need shard by shard"
        )

    def image(self, states: Iterable[DescribedState]) -> StateImage:
        """Returns what one slot would hold: without chains, and with as many members as a bounded state is to have."""
        described = {state.name: state for state in states}
        image = super().image(described.values())
        metadata = {field: value for field, value in image.metadata.items() if not is_chain(field)}
        contents = {name: _bounded(held, described.get(split_member(name)[0])) for name, held in image.states.items()}
        return replace(image, metadata=metadata, states=contents)

    def _of_shard(self, shard: RedisRecords, sought: Sought, commands: Commands) -> Read:
        kinds = {
            name: kind
            for name, kind in sought.kinds.items()
            if not _is_record(name) and (kind in SPREAD_KINDS or self._of(name, kind) is shard)
        }
        return shard.at_moment(replace(sought, since=shard.moment(), kinds=kinds), commands)

    def _holding(self, name: str, kind: StateKind) -> Sequence[RedisRecords]:
        return self.shards if kind in SPREAD_KINDS else (self._of(name, kind),)

    def _of(self, name: str, kind: StateKind) -> RedisRecords:
        return self.shards[shard_of(name, kind, "", len(self.shards))]

    def _have_applied(self, committed: str) -> bool:
        return all(self._committed(shard) == committed for shard in self.shards)

    @staticmethod
    def _committed(records: RedisRecords) -> str:
        return records.entry_counts({})[0]


def _bounded(held: Content, state: DescribedState | None) -> Content:
    side, _, most = ("" if state is None else state.keep).partition(" ")
    if not isinstance(held, Mapping) or side not in (KeptEnd.HIGHEST, KeptEnd.LOWEST):
        return held
    ranked = sorted(held.items(), key=lambda entry: (float(entry[1]), entry[0]), reverse=side == KeptEnd.HIGHEST)
    return dict(ranked[: int(most)])


def _is_record(name: str) -> bool:
    return name.startswith(f"{RESERVED_NAME}:")


def _score(entry: tuple[bytes, bytes]) -> tuple[float, bytes]:
    return float(entry[1]), entry[0]


def _joined(pieces: Iterable[Mapping[str, WholeReply]]) -> dict[str, WholeReply]:
    """Returns whole states from what each shard holds of them."""
    joined: dict[str, WholeReply] = {}
    for piece in pieces:
        for name, whole in piece.items():
            known = joined.get(name)
            joined[name] = whole if known is None else _with(known, whole)
    return joined


def _with(known: WholeReply, other: WholeReply) -> WholeReply:
    ends = [at for at in (known.expires_ms, other.expires_ms) if at is not None]
    reply: list[Any] = [*known.reply, *other.reply]
    if known.kind is not StateKind.SET:
        reply = [*pairs_of(known.reply), *pairs_of(other.reply)]
    if known.kind is StateKind.SORTED_SET:
        reply.sort(key=lambda pair: (float(pair[1]), bytes(pair[0])))
    return replace(known, reply=reply, expires_ms=max(ends, default=None))
