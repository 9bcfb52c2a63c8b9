"""What transactions change in all states of a topology, as a value that composes.

State handles build a `WriteSet` while `finish_batch` runs; it travels to the driver as plain data and
is composed with others before it is published. What becomes of one state is in `state_writes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from state.commits.state_writes import OrderMattersError, StateWrites
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, VALUE_FIELD, Field, Retention, StateKind, ValueType

__all__ = [
    "MAX_INTEGER",
    "VALUE_FIELD",
    "Field",
    "OrderMattersError",
    "StateKind",
    "StateWrites",
    "ValueType",
    "WriteSet",
    "compose",
]


@dataclass(slots=True)
class WriteSet:
    """The changes of one or more transactions to all states of a topology.

    Attributes:
        states: state name -> its changes.
    """

    states: dict[str, StateWrites] = field(default_factory=dict)

    def state(self, name: str, kind: StateKind, value_type: ValueType, retention: Retention = KEEP_ALL) -> StateWrites:
        """Returns the changes to one state, empty at first."""
        writes = self.states.get(name)
        if writes is None:
            writes = self.states[name] = StateWrites(kind, value_type, retention=retention)
        return writes

    def operations(self) -> int:
        """Returns how many changes the server will make."""
        return sum(writes.operations() for writes in self.states.values())

    def fields(self) -> Iterator[tuple[str, Field]]:
        """Yields every (state name, field) this changes, each once."""
        for name, writes in self.states.items():
            for key in writes.fields():
                yield name, key

    def then(self, later: WriteSet) -> None:
        """Composes the changes of a later transaction into this."""
        for name, writes in later.states.items():
            self.state(name, writes.kind, writes.value_type, writes.retention).then(writes)

    def merge(self, other: WriteSet) -> None:
        """Joins the changes of another task over the same transactions.

        Takes over the parts of `other`, which must not be used afterwards.

        Raises:
            OrderMattersError: both changed a field in ways that do not commute.
        """
        for name, writes in other.states.items():
            if name in self.states:
                self.states[name].merge(writes)
            else:
                self.states[name] = writes

    def settle(self) -> None:
        """Adds up what is still in columns of each state; see `StateWrites.settle`."""
        for writes in self.states.values():
            writes.settle()

    def pack(self) -> None:
        """Packs what can be packed of each state; see `StateWrites.pack`."""
        for writes in self.states.values():
            writes.pack()

    def to_wire(self) -> dict[str, Any]:
        """Returns plain data for the codec."""
        return {name: writes.to_wire() for name, writes in self.states.items()}

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> WriteSet:
        """Inverse of `to_wire`."""
        return cls({name: StateWrites.from_wire(writes) for name, writes in wire.items()})


def compose(write_sets: Iterable[WriteSet]) -> WriteSet:
    """Composes write sets in the given order (txid, component, task)."""
    total = WriteSet()
    for write_set in write_sets:
        total.then(write_set)
    return total
