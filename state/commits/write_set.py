"""What transactions change in all states of a topology, as a value that composes.

State handles build a `WriteSet` while `finish_batch` runs; it travels to the driver as plain data and
is composed with others before it is published. The changes to one state are a `TaskWrites` while they are made,
`StateWrites` while they are composed, and `PackedWrites` if commit tasks could pack them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from state.commits.packed_writes import PackedWrites, packed, unpacked
from state.commits.state_writes import StateWrites
from state.values.state_kind import KEEP_ALL, Field, Retention, StateKind, ValueType


@dataclass(frozen=True, slots=True)
class DeadLetterWrites:
    """The dead letters of a group; made by the driver just before it publishes, so never composed or sent.

    Attributes:
        added: new letter as it is stored -> its txid.
        taken: stored letters that go; the server refuses the commit if one of them is not there.
        total_max: most letters that may be stored afterwards, or the server refuses the commit.
    """

    added: dict[bytes, float]
    taken: Sequence[bytes]
    total_max: int

    def operations(self) -> int:
        return len(self.added) + len(self.taken)


@dataclass(slots=True)
class WriteSet:
    """The changes of one or more transactions to all states of a topology: state name -> its changes.

    The driver sets the changes to the dead letters just before it publishes.
    """

    states: dict[str, StateWrites | PackedWrites] = field(default_factory=dict)
    letters: DeadLetterWrites | None = None

    def state(self, name: str, kind: StateKind, value_type: ValueType, retention: Retention = KEEP_ALL) -> StateWrites:
        """Returns the changes to one state, to be composed with others; empty at first."""
        writes = self.states.get(name)
        if not isinstance(writes, StateWrites):
            made = StateWrites(kind, value_type, retention=retention) if writes is None else writes.unpacked()
            writes = self.states[name] = made
        return writes

    def operations(self) -> int:
        letters = 0 if self.letters is None else self.letters.operations()
        return letters + sum(writes.operations() for writes in self.states.values())

    def fields(self) -> Iterator[tuple[str, Field]]:
        """Yields every (state name, field) this changes, each once."""
        for name, writes in self.states.items():
            for key in writes.fields():
                yield name, key

    def then(self, later: WriteSet) -> None:
        """Composes the changes of a later transaction into this."""
        for name, writes in later.states.items():
            if isinstance(writes, PackedWrites) and name not in self.states:
                self.states[name] = writes.copied()
            elif not self._joined(name, writes):
                self.state(name, writes.kind, writes.value_type, writes.retention).then(unpacked(writes))

    def merge(self, other: WriteSet) -> None:
        """Joins the changes of another task over the same transactions, or raises OrderMattersError.

        Takes over the parts of `other`, which must not be used afterwards.
        """
        for name, writes in other.states.items():
            if name not in self.states:
                self.states[name] = writes
            elif not self._joined(name, writes):
                self.state(name, writes.kind, writes.value_type).merge(unpacked(writes))

    def pack(self) -> None:
        """Packs what can be packed; called by commit tasks, once."""
        self.states = {name: packed(unpacked(writes)) for name, writes in self.states.items()}

    def to_wire(self) -> dict[str, Any]:
        return {name: [isinstance(writes, PackedWrites), writes.to_wire()] for name, writes in self.states.items()}

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> WriteSet:
        made = ((name, (PackedWrites if is_packed else StateWrites), own) for name, (is_packed, own) in wire.items())
        return cls({name: form.from_wire(own) for name, form, own in made})

    def _joined(self, name: str, writes: StateWrites | PackedWrites) -> bool:
        own = self.states.get(name)
        return isinstance(own, PackedWrites) and isinstance(writes, PackedWrites) and own.join(writes)


def compose(write_sets: Iterable[WriteSet]) -> WriteSet:
    """Composes write sets in the given order (txid, component, task)."""
    total = WriteSet()
    for write_set in write_sets:
        total.then(write_set)
    return total


REACH_MAX = 2**40
"""Columns whose amounts might add up to more than this are added one by one, so that their reach is known exactly. A
thousand transactions with less are far from the range of a field."""


class IncrementColumns(NamedTuple):
    """Fields, any of them more than once, and what to add to each; none gets farther than `reach` from where it was."""

    fields: list[Any]
    amounts: list[int]
    reach: int

    @classmethod
    def of(cls, fields: list[Any], amounts: list[int]) -> IncrementColumns | None:
        """Returns columns of one length, which become its own; None if they hold other than small integers."""
        if {*map(type, amounts)} - {int}:
            return None
        highest, lowest = max(amounts, default=0), min(amounts, default=0)
        reach = max(highest, -lowest) * len(amounts)
        return cls(fields, amounts, reach) if reach <= REACH_MAX else None


class TaskWrites:
    """The changes to one state in one transaction on one task."""

    __slots__ = ("_columns", "_writes", "kind", "retention", "value_type")

    def __init__(self, kind: StateKind, value_type: ValueType, retention: Retention) -> None:
        self.kind, self.value_type, self.retention = kind, value_type, retention
        self._writes: StateWrites | None = None
        self._columns: list[IncrementColumns] = []

    def hold(self, columns: IncrementColumns) -> None:
        """Adds increments to a state that was only incremented so far."""
        self._columns.append(columns)

    def settled(self) -> StateWrites:
        """Returns the changes so far, all of them added up; what is changed in them is changed here."""
        writes = self._writes
        if writes is None:
            writes = self._writes = StateWrites(self.kind, self.value_type, retention=self.retention)
        for columns in self._columns:
            writes.add_columns(columns.fields, columns.amounts)
        self._columns.clear()
        return writes

    def is_empty(self) -> bool:
        return not self._columns and self._is_unsettled()

    def add_to(self, total: StateWrites) -> None:
        """Composes the changes into those of lower transactions."""
        if self._columns and self._is_unsettled() and not total.puts and not total.deletes:
            total.retention = self.retention
            for columns in self._columns:
                total.add_columns(columns.fields, columns.amounts, columns.reach)
        else:
            total.then(self.settled())

    def _is_unsettled(self) -> bool:
        """Returns whether there is nothing but columns, if anything."""
        return self._writes is None or not self._writes.operations()


class TaskWriteSet:
    """The changes to all states in one transaction on one task, by name."""

    def __init__(self) -> None:
        self.states: dict[str, TaskWrites] = {}

    def state(self, name: str, kind: StateKind, value_type: ValueType, retention: Retention) -> TaskWrites:
        """Returns the changes to one state, empty at first."""
        writes = self.states.get(name)
        if writes is None:
            writes = self.states[name] = TaskWrites(kind, value_type, retention)
        return writes

    def drop_empty(self) -> None:
        self.states = {name: writes for name, writes in self.states.items() if not writes.is_empty()}

    def settled(self) -> WriteSet:
        """Returns the changes as one of the write sets that are composed."""
        return WriteSet({name: writes.settled() for name, writes in self.states.items()})

    def add_to(self, total: WriteSet) -> None:
        """Composes the changes into those of lower transactions."""
        for name, writes in self.states.items():
            writes.add_to(total.state(name, writes.kind, writes.value_type, writes.retention))
