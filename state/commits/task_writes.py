"""What one transaction changes on one task, as its state handles make it.

Most transactions of a committer only add up integers. Its columns of fields and amounts are added to those of the group
in one pass: to add them up for their own transaction first would take as long again, and nobody looks at that sum
unless the transaction reads, puts or deletes too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.values.state_kind import Retention, StateKind, ValueType

REACH_MAX = 2**40
"""Columns whose amounts might add up to more than this are added one by one, so that their reach is known exactly. A
thousand transactions with less are far from the range of a field."""


class IncrementColumns(NamedTuple):
    """Fields and what to add to each; a field may be there more than once.

    Attributes:
        fields: the fields.
        amounts: one for each.
        reach: no field gets farther than this from where it was.
    """

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
    """The changes to one state in one transaction on one task.

    Args:
        kind: Redis type of the state.
        value_type: declared type of its values, as they are stored.
        retention: how much of the state is kept, and for how long.
    """

    __slots__ = ("_columns", "_writes", "kind", "retention", "value_type")

    def __init__(self, kind: StateKind, value_type: ValueType, retention: Retention) -> None:
        self.kind, self.value_type, self.retention = kind, value_type, retention
        self._writes = StateWrites(kind, value_type, retention=retention)
        self._columns: list[IncrementColumns] = []

    def hold(self, columns: IncrementColumns) -> None:
        """Adds increments to a state that was only incremented so far."""
        self._columns.append(columns)

    def settled(self) -> StateWrites:
        """Returns the changes so far, all of them added up; what is changed in them is changed here."""
        for columns in self._columns:
            self._writes.add_columns(columns.fields, columns.amounts)
        self._columns.clear()
        return self._writes

    def is_empty(self) -> bool:
        """Returns whether nothing was changed."""
        return not self._columns and not self._writes.operations()

    def add_to(self, total: StateWrites) -> None:
        """Composes the changes into those of lower transactions."""
        if self._columns and not self._writes.operations() and not total.puts and not total.deletes:
            total.retention = self.retention
            for columns in self._columns:
                total.add_columns(columns.fields, columns.amounts, columns.reach)
        else:
            total.then(self.settled())


class TaskWriteSet:
    """The changes to all states in one transaction on one task.

    Attributes:
        states: state name -> its changes.
    """

    def __init__(self) -> None:
        self.states: dict[str, TaskWrites] = {}

    def state(self, name: str, kind: StateKind, value_type: ValueType, retention: Retention) -> TaskWrites:
        """Returns the changes to one state, empty at first."""
        writes = self.states.get(name)
        if writes is None:
            writes = self.states[name] = TaskWrites(kind, value_type, retention)
        return writes

    def drop_empty(self) -> None:
        """Forgets states that were not changed."""
        self.states = {name: writes for name, writes in self.states.items() if not writes.is_empty()}

    def settled(self) -> WriteSet:
        """Returns the changes as one of the write sets that are composed."""
        return WriteSet({name: writes.settled() for name, writes in self.states.items()})

    def add_to(self, total: WriteSet) -> None:
        """Composes the changes into those of lower transactions."""
        for name, writes in self.states.items():
            writes.add_to(total.state(name, writes.kind, writes.value_type, writes.retention))
