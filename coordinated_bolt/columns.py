"""Rows held as columns: one list per field, which one C call can check, hash, cut, pack or sum.

Length, slices and iteration equal those of a list of rows, so code that counts, cuts or passes tuples works with both.
A stretch of tuples holds either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any, TypeAlias

Row: TypeAlias = list[Any]

_COUNT, _COLUMNS = "count", "columns"


class Columns:
    """A sequence of rows, held as one list per field.

    Args:
        lists: the columns, in the order of the fields, all of one length.
        count: how many rows there are; needed if there are no columns.

    Attributes:
        lists: the columns.
    """

    __slots__ = ("_count", "lists")

    def __init__(self, lists: list[list[Any]], count: int) -> None:
        self.lists = lists
        self._count = count

    @classmethod
    def of_rows(cls, rows: Sequence[Row], width: int) -> Columns:
        """Returns rows of `width` values as columns."""
        return cls(list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in range(width)], len(rows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        if not self.lists:
            return ([] for _ in range(self._count))
        return map(list, zip(*self.lists, strict=True))

    def __getitem__(self, part: slice) -> Columns:
        return Columns([column[part] for column in self.lists], len(range(self._count)[part]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Columns) and (self._count, self.lists) == (other._count, other.lists)

    __hash__ = None  # type: ignore[assignment] # it may be extended

    def __repr__(self) -> str:
        return f"Columns({self.lists!r}, {self._count})"

    def take(self, places: Sequence[int]) -> Columns:
        """Returns the rows at these places, in their order."""
        if len(places) < 2:  # with one place, an itemgetter returns the item itself
            return Columns([[column[place] for place in places] for column in self.lists], len(places))
        pick = itemgetter(*places)
        return Columns([list(pick(column)) for column in self.lists], len(places))

    def extend(self, others: Columns) -> None:
        """Appends other rows of the same stream."""
        for column, more in zip(self.lists, others.lists, strict=True):
            column.extend(more)
        self._count += len(others)


Rows: TypeAlias = list[Row] | Columns
"""The rows of a stretch of tuples, held one by one or as columns."""

Stretch: TypeAlias = tuple[int, Rows]
"""A stretch of tuples: the index of their stream, and the rows."""


def taken(rows: Rows, places: Sequence[int]) -> Rows:
    """Returns the rows at these places, held as before."""
    return rows.take(places) if isinstance(rows, Columns) else [rows[place] for place in places]


def column_of(rows: Rows, position: int) -> list[Any]:
    """Returns the values of one field; for columns, the list itself."""
    return rows.lists[position] if isinstance(rows, Columns) else [row[position] for row in rows]


def add_columns(stretches: list[Stretch], stream: int, columns: Columns) -> None:
    """Appends columns to the last stretch if it holds columns of the stream, else as a new stretch."""
    if stretches:
        last_stream, rows = stretches[-1]
        if last_stream == stream and isinstance(rows, Columns):
            rows.extend(columns)
            return
    stretches.append((stream, columns[:]))  # a copy: another target may get the same columns


_TEXTS: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    Decimal: ("decimals", str, Decimal),
    date: ("dates", date.isoformat, date.fromisoformat),
}
"""Type -> the name of its column on the wire, and the conversions from value to text and back. The codec would call
Python for each value; this packs one text for the whole column.
"""
_READ = {name: read for name, _, read in _TEXTS.values()}


def to_wire(rows: Rows) -> Any:
    """Returns the rows of a stretch as plain data for the codec: a list of rows, or a mapping that holds columns."""
    if not isinstance(rows, Columns):
        return rows
    return {_COUNT: len(rows), _COLUMNS: [_written(column) for column in rows.lists]}


def from_wire(wire: Any) -> Rows:
    """Inverse of `to_wire`.

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: `wire` holds no rows.
    """
    if isinstance(wire, list):
        return wire
    count, lists = wire[_COUNT], [_read(column) for column in wire[_COLUMNS]]
    if any(len(column) != count for column in lists):
        raise ValueError(f"columns of {[len(column) for column in lists]} values were counted as {count} rows")
    return Columns(lists, count)


def _written(column: list[Any]) -> list[Any] | dict[str, str]:
    if not column or type(column[0]) not in _TEXTS or len({*map(type, column)}) > 1:
        return column
    name, text_of, _ = _TEXTS[type(column[0])]
    return {name: "\n".join(map(text_of, column))}


def _read(wire: list[Any] | dict[str, str]) -> list[Any]:
    if isinstance(wire, list):
        return wire
    ((name, text),) = wire.items()
    texts = str.split(text, "\n")
    values = {each: _READ[name](each) for each in {*texts}}  # equal texts are frequent
    return [values[each] for each in texts]
