"""The changes of transactions to all states of a topology, as a value that composes.

State handles build a `WriteSet` while `finish_batch` runs; it is composed with others, travels to the driver as plain
data and is published. The changes to one state are `StateWrites`, or `PackedWrites` if commit tasks could pack them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from state.commits.packed_writes import PackedWrites, packed, unpacked
from state.commits.state_writes import StateWrites
from state.values.state_kind import KEEP_ALL, Field, Retention, StateKind, ValueType


@dataclass(frozen=True, slots=True)
class DeadLetterWrites:
    """The dead letters of a group; made by the driver just before it publishes, so never composed with others.

    Attributes:
        added: new letter in its stored form -> its txid.
        taken: stored letters to remove; the server refuses the commit if one is missing.
        total_max: most letters that may be stored afterwards; with more, the server refuses the commit.
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
        """Returns the changes to one state, empty at first."""
        writes = self.states.get(name)
        if not isinstance(writes, StateWrites):
            made = StateWrites(kind, value_type, retention=retention) if writes is None else writes.unpacked()
            writes = self.states[name] = made
        return writes

    def operations(self) -> int:
        letters = 0 if self.letters is None else self.letters.operations()
        return letters + sum(writes.operations() for writes in self.states.values())

    def fields(self, names: Container[str]) -> Iterator[tuple[str, Field]]:
        """Yields every changed (state name, field) of the named states, each once."""
        for name, writes in self.states.items():
            if name in names:
                yield from zip(repeat(name), writes.fields(), strict=False)

    def then(self, later: WriteSet) -> None:
        """Adds the changes of a later transaction."""
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

    def drop_empty(self) -> None:
        """Removes states without changes; called once the transaction has ended."""
        self.states = {name: writes for name, writes in self.states.items() if not unpacked(writes).is_empty()}

    def settled(self) -> WriteSet:
        """Settles the changes of every state, and returns itself."""
        for writes in self.states.values():
            unpacked(writes).settled()
        return self

    def pack(self, shard_count: int = 1) -> None:
        """Packs the changes that can be packed, by shard if there are several; called by commit tasks, once."""
        self.states = {name: packed(unpacked(writes), name, shard_count) for name, writes in self.states.items()}

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
