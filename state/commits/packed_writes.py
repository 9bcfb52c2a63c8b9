"""Changes to one state that commit tasks pack for the server: integers to add to fields of a hash, and nothing else.

A commit task packs what its whole group adds, the driver passes the blocks on, and the server unpacks them. Between
the two, nobody looks at an amount. The driver only has to prove that no field is in the blocks of two tasks, because a
server reads all fields of a commit before it writes the first: of two increments of one field it would lose one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from state.commits.packed_increments import IncrementBlock, increment_blocks
from state.commits.state_writes import StateWrites
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, Field, Retention, StateKind, ValueType


class PackedWrites:
    """The packed changes to one state, from one commit task or from several that share no field.

    Args:
        blocks: what to add; no field is in two of them.
        reach: see `StateWrites.reach`.
        retention: see `StateWrites.retention`.
    """

    __slots__ = ("_pieces", "_seen", "blocks", "reach", "retention")
    kind, value_type = StateKind.HASH, ValueType.INT

    def __init__(self, blocks: Iterable[IncrementBlock], reach: float = 0, retention: Retention = KEEP_ALL) -> None:
        self.blocks, self.reach, self.retention = list(blocks), reach, retention
        self._pieces: set[bytes] = set()  # of the first `_seen` blocks
        self._seen = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedWrites) and self.blocks == other.blocks

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"PackedWrites({self.blocks!r}, {self.reach!r})"

    def operations(self) -> int:
        """Returns how many changes the server will make."""
        return sum(block.count for block in self.blocks)

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yields each field, as it was packed, and its amount."""
        return chain.from_iterable(block.items() for block in self.blocks)

    def fields(self) -> Iterator[Field]:
        """Yields every field this changes, each once."""
        return (field for field, _ in self.items())

    def unpacked(self) -> StateWrites:
        """Returns the same changes in the form that composes with any other."""
        increments = dict(self.items())
        return StateWrites(
            self.kind, self.value_type, increments=increments, reach=self.reach, retention=self.retention
        )

    def copied(self) -> PackedWrites:
        """Returns a copy that others can join."""
        return PackedWrites(self.blocks, self.reach, self.retention)

    def join(self, other: PackedWrites) -> bool:
        """Adds what `other` packs if it is sure that no field is in both; returns whether it did.

        Called by the driver, for each task's blocks after the first. Order does not matter then, so this does for
        changes of the same transactions and of later ones.
        """
        for block in self.blocks[self._seen :]:
            self._pieces.update(block.pieces())
        self._seen = len(self.blocks)
        if not all(self._pieces.isdisjoint(block.pieces()) for block in other.blocks):
            return False
        self.blocks += other.blocks
        self.reach += other.reach
        return True

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        return [[block.to_wire() for block in self.blocks], self.reach, self.retention.to_wire()]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> PackedWrites:
        """Inverse of `to_wire`."""
        blocks, reach, retention = wire
        return cls(map(IncrementBlock.from_wire, blocks), reach, Retention.from_wire(retention))


def packed(writes: StateWrites) -> StateWrites | PackedWrites:
    """Returns changes packed, or as they are if they are more than increments that a server would take.

    Called by commit tasks, once per group.
    """
    increments = writes.increments
    if not increments or (writes.kind, writes.value_type) != (PackedWrites.kind, PackedWrites.value_type):
        return writes
    if writes.operations() > len(increments) or len({*map(type, increments)}) > 1:
        return writes
    if max(increments.values()) > MAX_INTEGER or min(increments.values()) < -MAX_INTEGER:
        return writes
    return PackedWrites(increment_blocks(increments), writes.moved(), writes.retention)


def unpacked(writes: StateWrites | PackedWrites) -> StateWrites:
    """Inverse of `packed`."""
    return writes.unpacked() if isinstance(writes, PackedWrites) else writes
