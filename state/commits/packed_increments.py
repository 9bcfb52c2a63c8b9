"""Integer increments of many fields as a few strings, in the form that the function library reads.

One string for all names costs the client a tenth of what one argument per name costs. The server gains less: in a bare
loop 0.3 of its time, in whole commits 0.1 to 0.2 at small transactions and nothing at large ones.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

SECTION_LIMIT = 1_000
"""Most operations in one section, and most fields in a block."""

_SEPARATOR = b"\n"

_WIDTHS = ((1, "b"), (2, "h"), (8, "q"))
"""Bytes per number, and the type code of such an array; the narrowest that holds all numbers of a string is taken."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Signed integers of at most 64 bits, big-endian, each as wide as the widest needs.

    Attributes:
        width: bytes per number: 1, 2 or 8.
        packed: the numbers.
    """

    width: int
    packed: bytes

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Numbers:
        """Packs numbers.

        Raises:
            OverflowError: a number needs more than 64 bits.
        """
        for width, code in _WIDTHS:
            try:
                packed = array(code, numbers)
            except OverflowError:
                if width == _WIDTHS[-1][0]:
                    raise
            else:
                return cls(width, _big_endian(packed).tobytes())
        raise AssertionError("unreachable: the last width raises")

    def unpacked(self) -> Sequence[int]:
        """Returns the numbers."""
        return _big_endian(array(dict(_WIDTHS)[self.width], self.packed))


@dataclass(frozen=True, slots=True)
class IncrementBlock:
    """Up to `SECTION_LIMIT` fields, each once, and the integer to add to each.

    Attributes:
        field_type: name of the type that all fields are given back as: str, bytes or int.
        count: number of fields.
        lengths: length in bytes of each field's name.
        names: the names, with a newline between each two.
        amounts: what to add to each field.
    """

    field_type: str
    count: int
    lengths: Numbers
    names: bytes
    amounts: Numbers

    @classmethod
    def of(cls, fields: Sequence[Any], amounts: Sequence[int]) -> IncrementBlock:
        """Packs fields and their amounts; fields of several types are given back as bytes.

        Raises:
            OverflowError: an amount needs more than 64 bits.
        """
        types = {*map(type, fields)}
        field_type = types.pop() if len(types) == 1 else bytes
        lengths, names = _joined(fields, field_type)
        return cls(field_type.__name__, len(fields), Numbers.of(lengths), names, Numbers.of(amounts))

    def pieces(self) -> list[bytes]:
        """Returns the names, cut at every newline, which is four times as fast as to cut at their ends.

        A name that has newlines is in several pieces. Equal names have equal pieces: if two blocks have
        no piece in common, they have no name in common.
        """
        return self.names.split(_SEPARATOR)

    def items(self) -> Iterator[tuple[Any, int]]:
        """Yields each field, as it was packed, and its amount."""
        names: Iterator[Any] = self._split()
        if self.field_type == "str":
            names = map(bytes.decode, names)
        elif self.field_type == "int":
            names = map(int, names)
        return zip(names, self.amounts.unpacked(), strict=True)

    def _split(self) -> Iterator[bytes]:
        start = 0
        for length in self.lengths.unpacked():
            yield self.names[start : start + length]
            start += length + len(_SEPARATOR)

    def arguments(self) -> list[str | bytes]:
        """Returns the arguments of a section, from its count on."""
        lengths, amounts = self.lengths, self.amounts
        return [str(self.count), str(lengths.width), lengths.packed, self.names, str(amounts.width), amounts.packed]

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec."""
        lengths, amounts = self.lengths, self.amounts
        return [self.field_type, self.count, lengths.width, lengths.packed, self.names, amounts.width, amounts.packed]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> IncrementBlock:
        """Inverse of `to_wire`."""
        field_type, count, length_width, lengths, names, amount_width, amounts = wire
        return cls(field_type, count, Numbers(length_width, lengths), names, Numbers(amount_width, amounts))


def increment_blocks(increments: Mapping[Any, int]) -> list[IncrementBlock]:
    """Packs field -> amount; called by commit tasks (executor) once per group, and by the driver for what is left.

    Raises:
        OverflowError: as `IncrementBlock.of`.
    """
    items = iter(increments.items())
    blocks = []
    while part := list(islice(items, SECTION_LIMIT)):
        fields, amounts = zip(*part, strict=True)
        blocks.append(IncrementBlock.of(fields, amounts))
    return blocks


def _joined(fields: Sequence[Any], field_type: type) -> tuple[Sequence[int], bytes]:
    """Returns the length of each name in bytes, and all names in one string."""
    if field_type is str:
        text = "\n".join(fields)
        joined = text.encode()
        if len(joined) == len(text):  # ASCII, as most names are
            return list(map(len, fields)), joined
    names = [field if type(field) is bytes else str(field).encode() for field in fields]
    return list(map(len, names)), _SEPARATOR.join(names)


def _big_endian(numbers: array[int]) -> array[int]:
    """Swaps the bytes of the numbers in place where this machine needs it; its own inverse."""
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
