"""Reads single states, as they are declared: their totals, their entries, one field (driver)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from coordinator.operating.transfer.exporting import described_states
from coordinator.operating.transfer.state_lines import lines_of
from coordinator.topology.pictures.picture_maker import held_in_words
from state.errors import TopologyError
from state.keys import member_name, split_member
from state.kinds.state_family import named_part
from state.records.declared_states import DescribedState
from state.records.stored_records import Entries, StoredPiece
from state.redis_admin.all_records import RedisRecords
from state.redis_owner.refusals import another_life_error
from state.values.state_kind import KeptEnd, StateKind, ValueType


@dataclass(frozen=True, slots=True)
class StateTotals:
    """One declared state and its size.

    Attributes:
        key: its Redis key; for a state with parts, the pattern of their keys.
        entry_count: number of fields, members, items or values, in all parts.
        part_count: number of existing parts; None for a state with one key.
    """

    state: DescribedState
    key: str
    entry_count: int
    part_count: int | None

    def as_json(self) -> dict[str, Any]:
        state = self.state
        shown: dict[str, Any] = {"name": state.name, "key": self.key, "kind": state.kind.value, "holds": _holds(state)}
        if state.keep:
            shown["keeps"] = state.keep
        if self.part_count is not None:
            shown |= {"parts": self.part_count, "expires": state.expires}
        if self.state.fields_expire:
            shown["fields_expire"] = True
        return {**shown, "entries": self.entry_count}

    HEADINGS: ClassVar = ("KEY", "KIND", "HOLDS", "ENTRIES")

    def as_row(self) -> tuple[str, str, str, str]:
        """Returns a cell for each of `HEADINGS`."""
        kind = self.state.kind.value + (f", {self.state.keep}" if self.state.keep else "")
        parts = "" if self.part_count is None else f" in {self.part_count:,} parts"
        expiry = "" if self.state.is_lasting else ", expiring"
        return self.key, kind, _holds(self.state), f"{self.entry_count:,}{parts}{expiry}"


@dataclass(frozen=True, slots=True)
class ChosenState:
    """A state, or one part of it, that a user has named.

    `name` is the name for `Keys.state`; `has_part` is False for a state with parts if no part was named.
    """

    name: str
    state: DescribedState
    has_part: bool


def state_totals(records: RedisRecords) -> tuple[int, list[StateTotals]]:
    """Returns the committed txid and the totals of every declared state, counted at one moment.

    Raises:
        TopologyError: the topology is not stored.
        StateRefusedError, StateUnreachableError: the states cannot be read.
    """
    states, life = described_states(records), records.life()
    names = {name: records.names_of(state) for name, state in sorted(states.items())}
    committed, counts = records.entry_counts({each: states[name].kind for name in names for each in names[name]})
    _refuse_another(records, life)
    found = iter(counts)
    totals = []
    for name, members in names.items():
        state, sizes = states[name], [next(found) for _ in members]
        present = [size for size in sizes if size]
        key = records.keys.shown(name, max(1, len(records.shards)))
        key += "" if state.part_type is None else f":<{state.part_type.value}>"
        totals.append(StateTotals(state, key, sum(present), None if state.part_type is None else len(present)))
    return int(committed), totals


def chosen_state(records: RedisRecords, text: str) -> ChosenState:
    """Returns the state that a user has named, perhaps with a part, which may be quoted as in its key.

    Raises:
        TopologyError: the topology is not stored, or declares no such state.
    """
    states = described_states(records)
    types = {name: state.part_type for name, state in states.items()}
    name, part = named_part(records.keys.topology_id, text, types)
    if part is not None:
        with suppress(ValueError):
            text = member_name(name, part)
    return ChosenState(text, states[name], part is not None or types[name] is None)


def lines_of_state(
    records: RedisRecords, chosen: ChosenState, *, is_raw: bool = False, from_lowest: bool = False
) -> Iterator[dict[str, Any]]:
    """Yields the entries of a state as in an export, or the parts of a state with parts if none was named.

    Members of a sorted set are ordered by score: the kept end first if it keeps only one, otherwise the highest. For a
    HyperLogLog the count is yielded, or with `is_raw` its registers.
    """
    life = records.life()
    if chosen.has_part:
        yield from _lines_of_part(records, chosen, life, is_raw=is_raw, from_lowest=from_lowest)
    else:
        yield from (
            {"state": chosen.state.name, "part": split_member(name)[1]} for name in records.names_of(chosen.state)
        )
    _refuse_another(records, life)


def _lines_of_part(
    records: RedisRecords, chosen: ChosenState, life: str, *, is_raw: bool, from_lowest: bool
) -> Iterator[dict[str, Any]]:
    is_missing = chosen.state.part_type is not None
    if chosen.state.kind is StateKind.HYPERLOGLOG and not is_raw:
        count = records.distinct_count(chosen.name)
        if count or not is_missing:
            state, part = split_member(chosen.name)
            yield {"state": state} | ({} if part is None else {"part": part}) | {"count": count}
            return
    for entries in _pieces(records, chosen, from_lowest=from_lowest):
        for line in _lines(records, chosen, entries):
            is_missing = False
            yield line
    if is_missing:  # a part that is empty has no key
        _refuse_another(records, life)
        name, part = split_member(chosen.name)
        raise TopologyError(f"state {name!r} has no part {part!r}; `txbatch state get TOPOLOGY {name}` lists its parts")


def _pieces(records: RedisRecords, chosen: ChosenState, *, from_lowest: bool) -> Iterator[Entries]:
    if chosen.state.kind is not StateKind.SORTED_SET:
        return records.entries(chosen.name, chosen.state.kind)
    keeps_lowest = chosen.state.keep.startswith(KeptEnd.LOWEST)
    return records.ranked(chosen.name, from_lowest=from_lowest or keeps_lowest)


def field_line(records: RedisRecords, chosen: ChosenState, field: str) -> dict[str, Any]:
    """Returns the entry of one field or member, as in an export.

    Raises:
        TopologyError: the state has no such entry, or no part was named.
    """
    kind = chosen.state.kind
    if not chosen.has_part:
        raise TopologyError(f"state {chosen.name!r} has parts; name one, as in {chosen.name}:PART")
    life = records.life()
    stored = records.entry(chosen.name, kind, field.encode())
    _refuse_another(records, life)
    if stored is None:
        raise TopologyError(f"state {chosen.name!r} has no entry {field!r}")
    for line in _lines(records, chosen, [(field.encode(), stored)]):
        return line
    raise TopologyError(f"entry {field!r} of state {chosen.name!r} has expired")


def _refuse_another(records: RedisRecords, life: str) -> None:
    if records.life() != life:
        raise another_life_error(records.keys.topology_id)


def _lines(records: RedisRecords, chosen: ChosenState, entries: Entries) -> Iterator[dict[str, Any]]:
    piece = StoredPiece(chosen.name, chosen.state.kind, entries)
    if chosen.state.fields_expire:
        piece = records.with_expiries(piece)
    return lines_of(piece, {chosen.state.name: chosen.state})


def _holds(state: DescribedState) -> str:
    value = state.value_type.value + (f"({state.scale})" if state.value_type is ValueType.DECIMAL else "")
    return held_in_words(state.kind, state.field_type.value, value)
