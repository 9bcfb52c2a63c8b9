"""Changes to one state that commit tasks pack for the server: only integers to add to fields of a hash.

A commit task packs the increments of its whole group, the driver passes the blocks on, and the server unpacks them. In
between, nobody reads an amount. The driver only has to prove that no field is in the blocks of two tasks, because a
server reads all fields of a commit before it writes the first: with two increments of one field, one would be lost.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from state.commits.state_writes import StateWrites
from state.values.shards import shard_of
from state.values.state_kind import KEEP_ALL, MAX_INTEGER, Field, Retention, StateKind, ValueType

SECTION_LIMIT = 1_000
"""Most operations in one section, and most fields in a block."""

_SEPARATOR = b"\n"

_WIDTHS = ((1, "b"), (2, "h"), (8, "q"))
"""Bytes per number and type code of the array; the narrowest that holds all numbers is used."""


def pack_integers(integers: Sequence[int]) -> tuple[int, bytes]:
    """Packs signed integers, big-endian, in 1, 2 or 8 bytes each, as the largest one requires.

    Returns the width in bytes, and the packed bytes. Raises OverflowError if an integer needs more than 64 bits.
    """
    for width, code in _WIDTHS:
        try:
            packed = array(code, integers)
        except OverflowError:
            if width == _WIDTHS[-1][0]:
                raise
        else:
            return width, _big_endian(packed).tobytes()
    raise AssertionError("unreachable: the last width raises")


def unpack_integers(width: int, packed: bytes) -> Sequence[int]:
    """Inverse of `pack_integers`."""
    return _big_endian(array(dict(_WIDTHS)[width], packed))


class IncrementBlock(NamedTuple):
    """Up to `SECTION_LIMIT` distinct fields, and the integer to add to each.

    Attributes:
        field_type: type to which all fields are unpacked: str, bytes or int.
        lengths: the length in bytes of each field's name, packed.
        names: the fields' names, separated by newlines.
        amounts: the integers to add, packed.
    """

    field_type: str
    field_count: int
    length_width: int
    lengths: bytes
    names: bytes
    amount_width: int
    amounts: bytes

    @classmethod
    def of(cls, fields: Sequence[Any], amounts: Sequence[int]) -> IncrementBlock:
        """Packs fields and their amounts; fields of several types are unpacked as bytes."""
        types = {*map(type, fields)}
        field_type = types.pop() if len(types) == 1 else bytes
        lengths, names = _joined(fields, field_type)
        return cls(field_type.__name__, len(fields), *pack_integers(lengths), names, *pack_integers(amounts))

    def pieces(self) -> list[bytes]:
        """Returns the names split at every newline, which is four times as fast as a split by lengths.

        A name with newlines is split into several pieces. Equal names have equal pieces, so two blocks without a common
        piece have no common name.
        """
        return self.names.split(_SEPARATOR)

    def items(self) -> Iterator[tuple[Any, int]]:
        names: Iterable[Any] = self._split()
        if self.field_type == "str":
            names = map(bytes.decode, names)
        elif self.field_type == "int":
            names = map(int, names)
        return zip(names, unpack_integers(self.amount_width, self.amounts), strict=True)

    def _split(self) -> Iterable[bytes]:
        pieces = self.pieces()
        return pieces if len(pieces) == self.field_count else self._cut_at_lengths()

    def _cut_at_lengths(self) -> Iterator[bytes]:
        start = 0
        for length in unpack_integers(self.length_width, self.lengths):
            yield self.names[start : start + length]
            start += length + len(_SEPARATOR)

    def arguments(self) -> list[str | bytes]:
        """Returns the arguments of a section, starting with its count."""
        return [
            str(self.field_count),
            str(self.length_width),
            self.lengths,
            self.names,
            str(self.amount_width),
            self.amounts,
        ]


def increment_blocks(increments: Mapping[Any, int]) -> list[IncrementBlock]:
    """Packs field -> amount; called by commit tasks (executor) once per group, by the driver for the rest."""
    fields, amounts = list(increments), list(increments.values())
    parts = (slice(start, start + SECTION_LIMIT) for start in range(0, len(fields), SECTION_LIMIT))
    return [IncrementBlock.of(fields[part], amounts[part]) for part in parts]


def _joined(fields: Sequence[Any], field_type: type) -> tuple[Sequence[int], bytes]:
    if field_type is str:
        joined = "\n".join(fields).encode()
        if joined.isascii():
            return list(map(len, fields)), joined
        names = joined.split(_SEPARATOR)
        if len(names) == len(fields):
            return list(map(len, names)), joined
    names = [field if type(field) is bytes else str(field).encode() for field in fields]
    return list(map(len, names)), _SEPARATOR.join(names)


def _big_endian(numbers: array[int]) -> array[int]:
    """Swaps the bytes of the numbers in place on a little-endian machine; its own inverse."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


class PackedWrites:
    """The packed changes to one state, from one commit task, or from several that have no field in common.

    No field is in two blocks; for `reach` and `retention` see `StateWrites`. In a topology over many slots, all fields
    of a block belong to one shard, whose number is in `places`; otherwise, or if shards are unknown, `places` is empty.
    """

    __slots__ = ("_pieces", "_seen", "blocks", "places", "reach", "retention")
    kind, value_type = StateKind.HASH, ValueType.INT

    def __init__(
        self,
        blocks: Iterable[IncrementBlock],
        reach: float = 0,
        retention: Retention = KEEP_ALL,
        places: Sequence[int] = (),
    ) -> None:
        self.blocks, self.reach, self.retention = list(blocks), reach, retention
        self.places = list(places)
        self._pieces: set[bytes] = set()  # the pieces of the first `_seen` blocks
        self._seen = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedWrites) and self.blocks == other.blocks

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"PackedWrites({self.blocks!r}, {self.reach!r})"

    def operations(self) -> int:
        return sum(block.field_count for block in self.blocks)

    def items(self) -> Iterator[tuple[Any, int]]:
        return chain.from_iterable(block.items() for block in self.blocks)

    def fields(self) -> Iterator[Field]:
        return (field for field, _ in self.items())

    def unpacked(self) -> StateWrites:
        """Returns the same changes as `StateWrites`, which compose with any others."""
        increments = dict(self.items())
        return StateWrites(
            self.kind, self.value_type, increments=increments, reach=self.reach, retention=self.retention
        )

    def copied(self) -> PackedWrites:
        """Returns a copy that can be joined with others."""
        return PackedWrites(self.blocks, self.reach, self.retention, self.places)

    def join(self, other: PackedWrites) -> bool:
        """Adds the blocks of `other` if they certainly have no field in common with these; returns whether it did.

        Called by the driver, for each task's blocks after the first. Without common fields order does not matter, so
        `other` may be of the same transactions or of later ones.
        """
        for block in self.blocks[self._seen :]:
            self._pieces.update(block.pieces())
        self._seen = len(self.blocks)
        if not all(self._pieces.isdisjoint(block.pieces()) for block in other.blocks):
            return False
        self.places = [*self.places, *other.places] if self.places and other.places else []
        self.blocks += other.blocks
        self.reach += other.reach
        return True

    def to_wire(self) -> list[Any]:
        return [list(map(list, self.blocks)), self.reach, self.retention.to_wire(), self.places]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> PackedWrites:
        blocks, reach, retention, places = wire
        return cls(map(IncrementBlock._make, blocks), reach, Retention.from_wire(retention), places)


def packed(writes: StateWrites, name: str = "", shard_count: int = 1) -> StateWrites | PackedWrites:
    """Returns the changes packed if they are only increments within the server's range, otherwise unpacked.

    With several shards, each block has the fields of one shard.
    """
    increments = writes.increments
    if not increments or (writes.kind, writes.value_type) != (PackedWrites.kind, PackedWrites.value_type):
        return writes
    if writes.operations() > len(increments) or len({*map(type, increments)}) > 1:
        return writes
    if max(increments.values()) > MAX_INTEGER or min(increments.values()) < -MAX_INTEGER:
        return writes
    if shard_count == 1:
        return PackedWrites(increment_blocks(increments), writes.moved(), writes.retention)
    shares: list[dict[Any, int]] = [{} for _ in range(shard_count)]
    for key, amount in increments.items():
        shares[shard_of(name, writes.kind, key, shard_count)][key] = amount
    placed = [(place, block) for place, share in enumerate(shares) for block in increment_blocks(share)]
    places, blocks = [place for place, _ in placed], [block for _, block in placed]
    return PackedWrites(blocks, writes.moved(), writes.retention, places)


def unpacked(writes: StateWrites | PackedWrites) -> StateWrites:
    return writes.unpacked() if isinstance(writes, PackedWrites) else writes
