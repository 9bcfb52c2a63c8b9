"""The format of JSON objects: selected fields, with their types."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

from coordinator.sources.records.field_types import (
    VALUE_SHOWN,
    FieldType,
    FieldTypes,
    checked_fields,
    column_from_text,
    declared_types,
    from_json,
    record_class_of,
)
from coordinator.sources.records.plain_formats import decoded
from coordinator.sources.records.record_format import BadRecordError, RecordFormat, with_unique_names
from state.printable import one_line
from state.values.number_text import decimal_of

NESTED = "."

_NAME_END = re.compile(rb'"[ \t\n\r]*:')
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACE = " \t\n\r"
_AS_TEXT = (Decimal, dt.date, dt.datetime)
"""Types whose texts are read in JSON as everywhere else."""
_PLAIN = {bool, int, str, type(None)}
"""Types that need no conversion where any type is wanted."""

_IF_ARRAY = "; if the file is one JSON array, write its objects as lines first, for example with `jq -c '.[]'`"


class JsonFields(RecordFormat):
    """Fields of a JSON object, in the order in which they are given.

    A field that is missing or of another type makes the record bad, unless its type is ``… | None``: then it is
    None. Fields that are not named are ignored. An object with a name twice is bad: one of its values would be lost.

    Args:
        fields: name -> type: int, float, str, bytes (Base64), bool, Decimal, datetime or date, or one of these
            ``| None``. A dot selects a nested field, ``"order.price"``, unless a field has that literal name. With
            names only, values are taken as they are, objects and lists included. Or a record class, see
            `record_class_of`.

    Raises:
        TopologyError: no fields are named, or a type is unknown.
    """

    def __init__(self, fields: FieldTypes | type[Any]) -> None:
        self._types = checked_fields(type(self).__name__, fields)
        self.record_class = record_class_of(fields)
        has_decimals = any(each.kind is Decimal for each in self._types)
        self._parse_float = _decimal if has_decimals else None
        self._make_decoders()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_decoder": None, "_decode_many": None}  # they cannot be shipped

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_decoders()

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._types)

    @property
    def types(self) -> Mapping[str, Any]:
        return declared_types(self._types)

    def row(self, data: bytes) -> list[Any]:
        found = self._object(data)
        values = []
        for field in self._types:
            value = found.get(field.name, _MISSING)
            if value is _MISSING and NESTED in field.name:
                value = _at(found, field.name)
            if type(value) is not field.kind or field.kind is float:  # other values need no conversion
                value = self._converted(field, value)
            values.append(value)
        if _may_hold_surrogates(data):
            _refuse_surrogates(self._types, values)
        return values

    def make_columns(self, records: Sequence[bytes]) -> list[list[Any]] | None:
        if type(self).row is not JsonFields.row or type(self).rows is not RecordFormat.rows:
            return None
        try:
            objects = self._decode_many(records)
            text = b"\n".join(records)
            if {*map(type, objects)} != {dict} or not _holds_no_more(text, objects):
                return None
            columns = list(map(partial(self._column, objects), self._types))
            if _may_hold_surrogates(text):
                _refuse_surrogates(self._types, columns)
        except (ValueError, RecursionError):  # a record is bad; `rows` says which one, and why
            return None
        return columns

    def _column(self, objects: Sequence[dict[str, Any]], field: FieldType) -> list[Any]:
        """Returns the values of one field, converted to its type.

        Raises:
            BadRecordError: a value is missing or has another type.
        """
        name = field.name
        if NESTED in name:
            values = [_at(found, name) for found in objects]
        else:
            try:
                values = list(map(itemgetter(name), objects))
            except KeyError:
                values = [found.get(name, _MISSING) for found in objects]
        found = {*map(type, values)}
        if found == {field.kind} and (field.kind is not float or all(map(math.isfinite, values))):
            return values
        if field.kind is None and found <= _PLAIN:
            return values
        if found == {str} and field.kind in _AS_TEXT:
            return column_from_text(replace(field, may_be_none=False), values)  # an empty text is not null
        return [self._converted(field, value) for value in values]

    def _converted(self, field: FieldType, value: Any) -> Any:
        if value is _MISSING:
            if not field.may_be_none or field.kind is None:
                raise field.missing()
            return None
        value = from_json(field, value)
        if field.kind is not None:
            return value
        try:
            return _with_finite_floats(field, value)
        except RecursionError:
            raise BadRecordError(f"field {field.name!r} is nested too deeply") from None

    def _make_decoders(self) -> None:
        """Makes a decoder of one record, which detects duplicate names, and a decoder of many, which does not."""
        # made once: with options, json.loads makes a decoder for every record
        new = partial(json.JSONDecoder, parse_float=self._parse_float, parse_constant=_refuse_constant)
        self._decoder = new(object_pairs_hook=with_unique_names)
        self._decode_many = _quick_decoder(self._parse_float) or partial(_scanned, new().raw_decode)

    def _object(self, data: bytes) -> Mapping[str, Any]:
        try:
            found = self._decoder.decode(decoded(data))
        except (ValueError, RecursionError) as error:
            if isinstance(error, BadRecordError):
                raise
            hint = _IF_ARRAY if data.lstrip().startswith(b"[") else ""
            raise BadRecordError(f"it is not JSON: {error}{hint}") from None
        if not isinstance(found, dict):
            hint = _IF_ARRAY if isinstance(found, list) else ""
            raise BadRecordError(f"it is a JSON value of type {type(found).__name__}, not an object{hint}")
        return found


_MISSING = object()


def _quick_decoder(parse_float: Callable[[str], Any] | None) -> Callable[[Sequence[bytes]], list[Any]] | None:
    """Returns a function that decodes records with msgspec; None if msgspec is not installed.

    It reads records as the json module does, except that it does not detect duplicate names; it refuses more records.
    """
    try:
        from msgspec.json import Decoder
    except ImportError:
        return None
    decode = Decoder(float_hook=parse_float).decode
    return lambda records: list(map(decode, records))


def _scanned(decode: Callable[[str], tuple[Any, int]], records: Sequence[bytes]) -> list[Any]:
    """Returns the values of records, read by the json module; raises ValueError unless each record is one value."""
    texts = [data.decode().strip(_SPACE) for data in records]
    scanned = [decode(text) for text in texts]
    if [end for _, end in scanned] != [*map(len, texts)]:
        raise ValueError("something follows a value")
    return [value for value, _ in scanned]


def _holds_no_more(text: bytes, objects: Sequence[dict[str, Any]]) -> bool:
    """Returns whether objects have as many names as their text: then no name is duplicate.

    Each name is followed by a colon, but values may hold colons, too, and quotes before them.
    """
    if sum(map(len, objects)) == text.count(b":"):
        return True
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return _names_in(objects) == len(_NAME_END.findall(text))


def _names_in(values: Iterable[Any]) -> int:
    count = 0
    for value in values:
        if type(value) is dict:
            count += len(value) + _names_in(value.values())
        elif type(value) is list:
            count += _names_in(value)
    return count


def _at(found: Any, name: str) -> Any:
    """Returns the value of a name with dots: of a field with that literal name, or of a nested one."""
    if type(found) is not dict:
        return _MISSING
    if name in found:
        return found[name]
    outer, dot, inner = name.partition(NESTED)
    while dot:  # bounded by the dots
        if outer in found and (value := _at(found[outer], inner)) is not _MISSING:
            return value
        more, dot, inner = inner.partition(NESTED)
        outer = f"{outer}{NESTED}{more}"
    return _MISSING


def _with_finite_floats(field: FieldType, value: Any) -> Any:
    """Returns an untyped value with decimals as floats; raises BadRecordError for a number too large for a float."""
    if type(value) is float or type(value) is Decimal:
        if not math.isfinite(number := float(value)):
            raise field.wrong(value)
        return number
    if type(value) is list:
        return [_with_finite_floats(field, item) for item in value]
    if type(value) is dict:
        return {name: _with_finite_floats(field, item) for name, item in value.items()}
    return value


def _decimal(number: str) -> Decimal:
    try:
        return decimal_of(number)
    except ValueError:
        raise BadRecordError(
            f"it holds the number {one_line(number, VALUE_SHOWN)}, which Decimal cannot hold"
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise BadRecordError(f"it holds {name}, which is not JSON")


def _may_hold_surrogates(text: bytes) -> bool:
    return b"\\" in text and _SURROGATE.search(text) is not None


def _refuse_surrogates(fields: tuple[FieldType, ...], values: list[Any]) -> None:
    """Raises BadRecordError if an escape stands for half a character, which cannot be sent or stored."""
    for field, value in zip(fields, values, strict=True):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise field.wrong(value) from None
