"""Reads all data of a topology over many slots, as `RedisRecords` does for one slot.

A read of several shards shows one transaction if every shard has applied home's decisions, see `shard_fault`, and
neither home nor a shard has moved on until the last one was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from heapq import merge
from itertools import chain, islice
from typing import Any, TypeVar

from state.errors import StateRefusedError
from state.keys import RESERVED_NAME, is_chain, split_member
from state.records.declared_states import DescribedState, declared_states_of, shard_count_of
from state.records.shard_faults import CONSISTENCY_FIELDS, ShardFault, shard_fault
from state.records.stored_records import Entries, StateImage, StoredPiece, StreamPosition
from state.redis_admin.all_records import KeysToRead, RedisRecords
from state.redis_admin.whole_replies import Commands, Read, WholeReply
from state.redis_client.connection import RedisConnection, pairs_of
from state.redis_owner.refusals import ReshapedError, refuse_remains
from state.troubles import Trouble
from state.values.shards import SPREAD_KINDS, shard_of
from state.values.state_kind import KeptEnd, Retention, StateKind

Result = TypeVar("Result")
MOMENT_TRIES = 100
PAUSE_S = 0.01
"""The pause between two tries to read all shards at one transaction: about the time to apply a group."""
ASKED_PAUSE_MS = 10_000
"""How long a run is asked to begin no new group; the request ends as soon as everything is read."""
STILL_S = 1.0
"""If home decides nothing for this long, the shards' disagreement is not due to a fast run."""


class _Home(RedisRecords):
    """A reader of the topology's own slot, which holds records only."""

    def _follow(self, control: Mapping[str, str]) -> None:
        pass


class ShardedRecords(RedisRecords):
    """The data of one topology over many slots (driver).

    Args:
        home: reads the topology's own slot.
        connections: number of shards -> their connections, in order; called again if an import has changed the number.
    """

    def __init__(
        self,
        home: RedisRecords,
        connections: Callable[[int], Sequence[RedisConnection]],
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(home._connection, home.keys)  # noqa: SLF001 - of the same class
        self._home, self._pause = _Home(self._connection, self.keys), pause
        self._connections, self._described = connections, ""
        self._follow({"topology": home.description()})

    def _follow(self, control: Mapping[str, str]) -> None:
        described = control.get("topology", "")
        if described in ("", self._described):  # home may have lost its record; the shards report that
            return
        shard_count = shard_count_of(described)
        if shard_count == 1:
            raise ReshapedError(self.keys.topology_id, "in one slot")
        self._described, self._bounds = described, _bounds_of(described)
        connections = enumerate(self._connections(shard_count))
        self.shards = tuple(RedisRecords(each, self.keys.shard(number)) for number, each in connections)

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
        for number, shard in enumerate(self.shards):
            own = replace(piece, entries=self._own(number, piece.name, piece.kind, piece.entries))
            if own.entries:
                found = shard.with_expiries(own)
                entries += found.entries
                expiries |= found.expiries
        return replace(piece, entries=entries, expiries=expiries)

    def entries(self, name: str, kind: StateKind) -> Iterator[Entries]:
        if _is_record(name):
            yield from self._home.entries(name, kind)
        elif self._bound(name) is not None:
            yield [*chain.from_iterable(self.ranked(name, from_lowest=True))]
        elif kind not in SPREAD_KINDS:
            yield from self._of(name, kind).entries(name, kind)
        else:
            for number, shard in enumerate(self.shards):
                for piece in shard.entries(name, kind):
                    yield self._own(number, name, kind, piece)

    def ranked(self, name: str, *, from_lowest: bool) -> Iterator[Entries]:
        """Yields members and scores of a sorted set by rank; each shard of a bounded set keeps as many as the whole."""
        bound = self._bound(name)
        is_rising = from_lowest if bound is None else bound.side is KeptEnd.LOWEST
        entries = merge(
            *(self._ranked_on(number, name, from_lowest=is_rising) for number in range(len(self.shards))),
            key=_score,
            reverse=not is_rising,
        )
        if bound is None:
            yield from ([entry] for entry in entries)
        else:
            kept = [*islice(entries, bound.most)]
            yield kept if is_rising == from_lowest else kept[::-1]

    def _ranked_on(self, number: int, name: str, *, from_lowest: bool) -> Iterator[tuple[bytes, bytes]]:
        for piece in self.shards[number].ranked(name, from_lowest=from_lowest):
            yield from self._own(number, name, StateKind.SORTED_SET, piece)

    def distinct_count(self, name: str) -> int:
        return self._of(name, StateKind.HYPERLOGLOG).distinct_count(name)

    def entry(self, name: str, kind: StateKind, field: bytes) -> bytes | None:
        return self.shards[shard_of(name, kind, field, len(self.shards))].entry(name, kind, field)

    def misplaced(self, name: str, kind: StateKind) -> Iterator[tuple[str, bytes]]:
        """Yields the key and field of each entry stored on a wrong shard, where nobody reads it."""
        for number, shard in enumerate(self.shards):
            for piece in shard.entries(name, kind) if kind in SPREAD_KINDS else ():
                own = set(self._own(number, name, kind, piece))
                yield from ((shard.keys.state(name), entry[0]) for entry in piece if entry not in own)

    def _own(self, number: int, name: str, kind: StateKind, entries: Entries) -> Entries:
        """Returns the entries that belong on a shard; another program may have added others there."""
        if kind not in SPREAD_KINDS:
            return entries
        return [entry for entry in entries if shard_of(name, kind, entry[0], len(self.shards)) == number]

    def _bound(self, name: str) -> Retention | None:
        return self._bounds.get(split_member(name)[0])

    # All states at one moment

    def entry_counts(self, kinds: Mapping[str, StateKind]) -> tuple[str, list[int]]:
        def read() -> tuple[str, list[int]]:
            committed, _ = self._home.entry_counts({})
            found = [shard.entry_counts(kinds) for shard in self.shards]
            totals = [sum(each) for each in zip(*(counts for _, counts in found), strict=True)]
            bounds = map(self._bound, kinds)
            return committed, [
                total if bound is None else min(total, bound.most) for total, bound in zip(totals, bounds, strict=True)
            ]

        return self._of_one_transaction(read)

    def entry_count(self, sought: KeysToRead) -> int:
        states = {name: kind for name, kind in sought.kinds.items() if not _is_record(name)}
        records = replace(sought, kinds={name: kind for name, kind in sought.kinds.items() if _is_record(name)})
        return self._home.entry_count(records) + sum(self.entry_counts(states)[1])

    def moment(self) -> tuple[str, ...]:
        """Returns the moment of home; while a shard lags or is ahead, a value that equals no moment."""
        home = self._home.moment()
        return home if not any(self._faults(self._standings())) else ("", *home)

    def life(self) -> str:
        life, before = self._home.life(), self._standings()
        faults = self._faults(before)
        for _ in range(MOMENT_TRIES):
            if not any(faults) or (all(fault.passes for fault in faults) and self._standings()[0] != before[0]):
                return life
            self._pause(PAUSE_S)
            faults = self._faults(self._standings())
        raise self._apart()

    def at_moment(self, sought: KeysToRead, commands: Commands) -> Read:
        records = {name: kind for name, kind in sought.kinds.items() if _is_record(name)}

        def read() -> Read:
            control, found = self._home.at_moment(replace(sought, kinds=records, growing=()), commands)
            pieces = [self._of_shard(shard, sought, commands) for shard in self.shards]
            return control, found | self._joined(pieces)

        return self._of_one_transaction(read)

    def _of_one_transaction(self, read: Callable[[], Result]) -> Result:
        """Returns a reading during which home and all shards stayed at one transaction.

        If a run keeps moving on, it is asked to wait; if this user may not ask, the reading is just repeated.
        """

        def tried() -> Result | None:
            before = self._standings()
            if any(self._faults(before)):
                return None
            found = read()
            return found if self._standings() == before else None

        if (found := tried()) is not None:
            return found
        try:
            for _ in range(MOMENT_TRIES):
                self._ask("SET", "1", "PX", str(ASKED_PAUSE_MS))
                self._pause(PAUSE_S)
                if (found := tried()) is not None:
                    return found
        finally:
            self._ask("DEL")
        raise self._apart()

    def _standings(self) -> list[dict[str, str]]:
        """Returns the transaction and the generation of home and of every shard.

        Every change of a state changes one of these fields. If they are equal before and after a reading, it is
        consistent.
        """
        home = self._home.fields(*CONSISTENCY_FIELDS)
        self._follow(home)
        home["chain"] = self._home.chain_at(home.get("committed", "0"))
        standings = [home, *(shard.fields(*CONSISTENCY_FIELDS) for shard in self.shards)]
        for standing in standings:
            refuse_remains(self.keys.topology_id, standing)
            for counted in ("begun", "ended"):  # by what is staged, too
                standing.pop(counted, None)
        return standings

    @staticmethod
    def _faults(standings: Sequence[Mapping[str, str]]) -> list[ShardFault]:
        return [shard_fault(standings[0], shard) for shard in standings[1:]]

    def _ask(self, command: str, *arguments: str) -> None:
        """Asks a run to start no new group, or to continue."""
        first = self.shards[0]
        with suppress(StateRefusedError):
            first._connection.call(command, first.keys.pause, *arguments)  # noqa: SLF001 - of the same class

    def image(self, states: Iterable[DescribedState]) -> StateImage:
        """Returns the image that one slot would hold, without chains."""
        image = super().image(states)
        return replace(image, metadata={name: value for name, value in image.metadata.items() if not is_chain(name)})

    def _apart(self) -> StateRefusedError:
        """Returns the error for shards that could not be read at one transaction."""
        topology_id, before = self.keys.topology_id, self._home.moment()
        self._pause(STILL_S)
        standings = self._standings()
        faults = zip(self.shards, self._faults(standings), strict=True)
        found = {shard.keys.topology_id: fault for shard, fault in faults if fault}
        committed = standings[0].get("committed", "0")
        if found and (self._home.moment() == before or not all(fault.passes for fault in found.values())):
            said = ", ".join(f"{name} {fault}" for name, fault in found.items())
            return StateRefusedError(
                f"topology {topology_id!r} is not whole: {said}, up to txid {committed}; an import was killed: import "
                "again; or a run was, or a server has lost writes: run the topology, which applies what is missing, or "
                "says what is lost"
            ).about(Trouble.REGRESSED)
        return StateRefusedError(
            f"topology {topology_id!r} commits faster than its {len(self.shards)} shards can be read at one "
            "transaction, also while its run waits for that; stop the run, or read what you need shard by shard"
        )

    def _of_shard(self, shard: RedisRecords, sought: KeysToRead, commands: Commands) -> dict[str, WholeReply]:
        """Reads one shard at one moment; searches for parts again, since a run may have added some."""
        there = shard.sought(sought.growing)
        states = {name: kind for name, kind in sought.kinds.items() if not _is_record(name)}
        kinds = {name: kind for name, kind in states.items() if split_member(name)[1] is None} | there.kinds
        own = {n: kind for n, kind in kinds.items() if kind in SPREAD_KINDS or self._of(n, kind) is shard}
        return shard.at_moment(replace(there, kinds=own), commands)[1]

    def _joined(self, pieces: Sequence[Mapping[str, WholeReply]]) -> dict[str, WholeReply]:
        """Returns whole states, joined from the shards' entries."""
        joined: dict[str, WholeReply] = {}
        for number, piece in enumerate(pieces):
            for name, found in piece.items():
                is_spread, known = found.kind in SPREAD_KINDS, joined.get(name)
                whole = replace(found, reply=self._own_items(number, name, found)) if is_spread else found
                joined[name] = whole if known is None else _with(known, whole)
        for name, whole in joined.items():
            bound = self._bound(name)
            if whole.kind is StateKind.SORTED_SET:
                ranked = sorted(whole.reply, key=lambda pair: (float(pair[1]), bytes(pair[0])))
                if bound is not None:
                    ranked = ranked[-bound.most :] if bound.side is KeptEnd.HIGHEST else ranked[: bound.most]
                joined[name] = replace(whole, reply=ranked)
        return joined

    def _own_items(self, number: int, name: str, whole: WholeReply) -> list[Any]:
        if whole.kind is StateKind.SET:
            return [entry[0] for entry in self._own(number, name, whole.kind, [(each, b"") for each in whole.reply])]
        return self._own(number, name, whole.kind, list(pairs_of(whole.reply)))

    def _of(self, name: str, kind: StateKind) -> RedisRecords:
        return self.shards[shard_of(name, kind, "", len(self.shards))]


def _bounds_of(description: str) -> dict[str, Retention]:
    """Returns state -> retention, of the sorted sets that keep only their best members."""
    bounds: dict[str, Retention] = {}
    with suppress(ValueError):
        for name, state in declared_states_of(description).items():
            side, _, most = state.keep.partition(" ")
            if side in (KeptEnd.HIGHEST, KeptEnd.LOWEST):
                bounds[name] = Retention(KeptEnd(side), int(most))
    return bounds


def _is_record(name: str) -> bool:
    return name.startswith(f"{RESERVED_NAME}:")


def _score(entry: tuple[bytes, bytes]) -> tuple[float, bytes]:
    return float(entry[1]), entry[0]


def _with(known: WholeReply, other: WholeReply) -> WholeReply:
    ends = [at for at in (known.expires_ms, other.expires_ms) if at is not None]
    return replace(known, reply=[*known.reply, *other.reply], expires_ms=max(ends, default=None))
