"""Makes a row from emitted values: a list of values that may travel and that nobody else can change.

A row of plain values is checked and used unchanged; only a row with other values is copied, value by value. A value
that cannot travel is refused here, while the line that emitted it is still running.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from coordinated_bolt.columns import Columns
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.records import row_of
from coordinated_bolt.streams.tuples import cut
from state.codec import CodecError, is_valid_text
from state.printable import counted
from state.values.column_values import is_unordered
from state.values.own_copy import ATOMS, own_copy

ORDINARY = frozenset({list, tuple})
"""The types of nearly all emitted rows; any other type is checked for an order."""

_PORTION = 256
"""Rows checked together: columns of this length are cheap to extract, whatever the number of fields."""

_TEXT = {str}


class StreamRows:
    """Checks and copies the rows that one component emits on one stream.

    Args:
        component_id: the component, for messages.
        spec: the declaration of the stream.
    """

    def __init__(self, component_id: str, spec: StreamSpec) -> None:
        self._component_id = component_id
        self._spec = spec

    def refusal(self, values: Any) -> ValueError:
        """Returns the error that says why `values` are not a row of this stream."""
        fields = self._spec.fields
        text = (
            f"component {self._component_id!r} emitted {cut(values)} on stream {self._spec.stream_id!r}, "
            f"which takes a list of {counted(len(fields), 'value')}: {', '.join(map(repr, fields))}"
        )
        if isinstance(values, Mapping):
            text += f"; {type(values).__name__} maps names to values, so emit [row[name] for name in fields]"
        elif isinstance(values, Set):
            text += f"; {type(values).__name__} has no order, so emit sorted(row) or a list"
        return ValueError(text)

    def listed(self, values: Any) -> list[Any]:
        """Returns an emitted object as a list, whose length is not checked yet.

        Raises:
            ValueError: the object has no order, or is neither iterable nor a record of the stream.
        """
        row = row_of(values, self._spec.fields)
        if row is not None:
            return row
        if not isinstance(values, (tuple, list)) and (is_unordered(values) or not hasattr(type(values), "__iter__")):
            raise self.refusal(values)
        return list(values)

    def own(self, row: list[Any]) -> list[Any]:
        """Returns the row with its mutable values copied.

        Raises:
            CodecError: a value cannot travel.
        """
        try:
            return [value if type(value) in ATOMS else own_copy(value) for value in row]
        except CodecError as error:
            raise self._cannot_travel(row, error) from None

    def own_all(self, rows: list[list[Any]]) -> None:
        """Replaces mutable values by copies; plain columns run nearly at the speed of C.

        Raises:
            CodecError: a value cannot travel.
        """
        for start in range(0, len(rows), _PORTION):
            portion = rows[start : start + _PORTION]
            for position, column in enumerate(zip(*portion, strict=True)):
                if not _is_plain(column):
                    self._own_column(portion, position)

    def own_columns(self, columns: Columns) -> None:
        """Replaces mutable values by copies, as `own_all` does.

        Raises:
            CodecError: a value cannot travel.
        """
        for column in columns.lists:
            if not _is_plain(column):
                for place, value in enumerate(column):
                    try:
                        column[place] = own_copy(value)
                    except CodecError as error:
                        raise self._cannot_travel([values[place] for values in columns.lists], error) from None

    def batch_refusal(self, batch: Any, reason: str) -> ValueError:
        """Returns the error that says why `batch` does not hold columns of this stream."""
        fields = self._spec.fields
        return ValueError(
            f"component {self._component_id!r} emitted the batch {cut(batch)} on stream {self._spec.stream_id!r}, "
            f"which takes {counted(len(fields), 'column')} of one length: {', '.join(map(repr, fields))}; {reason}"
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's values."""
        return self._spec.fields

    def _own_column(self, rows: list[list[Any]], position: int) -> None:
        for row in rows:
            try:
                row[position] = own_copy(row[position])
            except CodecError as error:
                raise self._cannot_travel(row, error) from None

    def _cannot_travel(self, row: list[Any], error: CodecError) -> CodecError:
        return CodecError(
            f"component {self._component_id!r} emitted {cut(row)} on stream {self._spec.stream_id!r}, "
            f"which cannot be sent or stored: field {self._field_of(row)!r} {error}"
        )

    def _field_of(self, row: list[Any]) -> str:
        """Returns the first field whose value cannot travel."""
        for field, value in zip(self._spec.fields[:-1], row, strict=False):
            try:
                own_copy(value)
            except CodecError:
                return field
        return self._spec.fields[-1]


def listed(component_id: str, rows: Iterable[Any]) -> list[Any]:
    """Returns the rows given to `emit_all` as a list.

    Raises:
        ValueError: the rows are text, a mapping or a set.
    """
    if type(rows) not in ORDINARY and is_unordered(rows):
        raise ValueError(
            f"component {component_id!r} called emit_all with {cut(rows)}, a {type(rows).__name__}; "
            "give a list of rows: items() of a mapping, sorted(rows) of a set"
        )
    return list(rows)


def _is_plain(column: Sequence[Any]) -> bool:
    kinds = {*map(type, column)}
    if kinds == _TEXT:
        text = "".join(column)
    elif kinds <= ATOMS:
        return True
    elif str in kinds and kinds - _TEXT <= ATOMS:
        text = "".join(value for value in column if type(value) is str)
    else:
        return False
    return text.isascii() or is_valid_text(text)
