"""Formats of records without a schema: text, raw bytes, packed values, and values that a function makes of bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coordinator.sources.records.field_types import checked_fields
from coordinator.sources.records.record_format import BadRecordError, RecordFormat, with_unique_names
from state.codec import CodecError, unpack
from state.errors import TopologyError


class TextLine(RecordFormat):
    """UTF-8 text, as tuples of one field.

    Args:
        field: name of the field.
        replace: put U+FFFD in place of bytes that are not UTF-8, instead of treating the record as bad.
    """

    def __init__(self, field: str = "line", *, replace: bool = False) -> None:
        self.field = field
        self.replace = replace

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.field,)

    @property
    def types(self) -> Mapping[str, Any]:
        return {self.field: str}

    def row(self, data: bytes) -> tuple[str]:
        return (decoded(data, replace=self.replace),)

    def rows(self, records: Sequence[bytes]) -> list[Sequence[Any] | BadRecordError]:
        lines = _lines(records)
        return super().rows(records) if lines is None else list(zip(lines, strict=True))

    def make_columns(self, records: Sequence[bytes]) -> list[list[Any]] | None:
        lines = _lines(records) if self._is_plain() else None
        return None if lines is None else [lines]

    def split_columns(self, content: bytes) -> list[list[Any]] | None:
        try:
            return [content.decode().split("\n")] if self._is_plain() else None
        except UnicodeDecodeError:
            return None

    def _is_plain(self) -> bool:
        """Returns whether no subclass makes its own rows."""
        return type(self).row is TextLine.row and type(self).rows is TextLine.rows


def _lines(records: Sequence[bytes]) -> list[str] | None:
    """Returns the records as text, decoded at once; None if they have to be decoded one by one."""
    if not records:
        return []
    try:
        lines = b"\n".join(records).decode().split("\n")
    except UnicodeDecodeError:
        return None
    # a record with a newline in it, such as a Kafka message, would become two
    return lines if len(lines) == len(records) else None


def decoded(data: bytes, *, replace: bool = False) -> str:
    """Returns a record as text.

    Raises:
        BadRecordError: the record is not UTF-8.
    """
    try:
        return data.decode("utf-8", "replace" if replace else "strict")
    except UnicodeDecodeError as error:
        raise BadRecordError(
            f"byte {data[error.start]:#04x} at position {error.start} is not valid UTF-8: {error.reason}"
        ) from None


class FunctionFormat(RecordFormat):
    """Tuples made by a function.

    Args:
        fields: names of the values that the function returns.
        function: record -> a list of values, one for every field. It has to pickle, so it is defined in a module; it
            depends on nothing but the record, and raises `BadRecordError` if it cannot read it. Any other exception is
            a bug in the function and ends the run.

    Raises:
        TopologyError: the fields are not a list of names, or the function cannot be called.
    """

    def __init__(self, fields: Sequence[str], function: Callable[[bytes], Sequence[Any]]) -> None:
        self._fields = tuple(each.name for each in checked_fields(type(self).__name__, fields))
        if not callable(function):
            raise TopologyError(f"function={function!r} of FunctionFormat cannot be called")
        self._function = function

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    def row(self, data: bytes) -> Sequence[Any]:
        return self._function(data)


class RawBytes(RecordFormat):
    """The record's bytes, unchanged, as one field.

    Args:
        field: name of the field.
    """

    def __init__(self, field: str = "value") -> None:
        self._field = field

    @property
    def fields(self) -> tuple[str, ...]:
        return (self._field,)

    @property
    def types(self) -> Mapping[str, Any]:
        return {self._field: bytes}

    def row(self, data: bytes) -> list[bytes]:
        return [data]


class PackedValues(RecordFormat):
    """Values packed by msgpack: a list with a value for every field, or a mapping from field names to values.

    Other programs may have packed them, without extension types except those of `state.codec`, which stand for tuples,
    sets, dates, decimals and large integers. A mapping with a duplicate key is bad.

    Args:
        fields: names of the fields.

    Raises:
        TopologyError: the fields are not a list of names.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = tuple(each.name for each in checked_fields(type(self).__name__, fields))

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields

    def row(self, data: bytes) -> list[Any]:
        try:
            found = unpack(data, mapping=with_unique_names)
        except CodecError as error:
            raise BadRecordError(f"it cannot be read as msgpack: {error}") from None
        if isinstance(found, dict):
            for name in self._fields:
                if name not in found:
                    raise BadRecordError(f"field {name!r} is missing")
            return [found[name] for name in self._fields]
        if not isinstance(found, (list, tuple)) or len(found) != len(self._fields):
            raise BadRecordError(
                f"it is a {type(found).__name__}; a list of {len(self._fields)} values or a mapping is wanted"
            )
        return list(found)
