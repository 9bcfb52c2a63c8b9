"""What transactions change in all states of a topology, as a value that composes.

State handles build a `WriteSet` while `finish_batch` runs; it travels to the driver as plain data and
is composed with others before it is published. The changes to one state are a `TaskWrites` while they are made,
`StateWrites` while they are composed, and `PackedWrites` if commit tasks could pack them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from state.commits.dead_letter_writes import DeadLetterWrites
from state.commits.packed_writes import PackedWrites, packed, unpacked
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
        letters: changes to the dead letters; set by the driver just before it publishes.
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
        """Returns how many changes the server will make."""
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
        """Joins the changes of another task over the same transactions.

        Takes over the parts of `other`, which must not be used afterwards.

        Raises:
            OrderMattersError: both changed a field in ways that do not commute.
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
        """Returns plain data for the codec."""
        return {name: [isinstance(writes, PackedWrites), writes.to_wire()] for name, writes in self.states.items()}

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> WriteSet:
        """Inverse of `to_wire`."""
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
