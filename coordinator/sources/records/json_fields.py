"""A record is a JSON object; some of its fields are wanted, with their types."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

from coordinator.sources.records.field_types import (
    VALUE_SHOWN,
    FieldType,
    FieldTypes,
    checked_fields,
    declared_types,
    from_json,
)
from coordinator.sources.records.plain_formats import decoded
from coordinator.sources.records.record_format import BadRecordError, RecordFormat, by_unique_name
from state.printable import one_line
from state.values.number_text import decimal_of

NESTED = "."

NEXT_RECORD = "txbatch: the next record"
"""A value that stands between each two records of many that are read in one call."""
_BETWEEN = b',"%s",' % NEXT_RECORD.encode()
_NAME_END = re.compile(r'"[ \t\n\r]*:')
_ESCAPED_LETTER = re.compile(r"\\u00[2-7]")
"""How a record might spell that value otherwise; others escape no plain letters."""

_IF_ARRAY = "; if the file is one JSON array, write its objects as lines first, for example with `jq -c '.[]'`"


class JsonFields(RecordFormat):
    """Fields of a JSON object, in the order in which they are given.

    A field that is missing or of another type makes the record bad, unless its type is ``… | None``: then it is
    None. Fields that are not named are ignored. An object with a name twice is bad: one of its values would be lost.

    Args:
        fields: name -> type: int, float, str, bytes (Base64), bool, Decimal, datetime or date, or one of these
            ``| None``. A dot leads into an object, ``"order.price"``, unless a field is called so. With names only,
            values are taken as they are, objects and lists included.

    Raises:
        TopologyError: no fields are named, or a type is unknown.
    """

    def __init__(self, fields: FieldTypes) -> None:
        self._types = checked_fields(type(self).__name__, fields)
        has_decimals = any(each.kind is Decimal for each in self._types)
        self._parse_float = _decimal if has_decimals else None
        self._decoder, self._flat_decoder = self._new_decoders()
        self._are_flat = True  # until a record holds an object within another

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoder": None, "_flat_decoder": None}  # they cannot be shipped

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._decoder, self._flat_decoder = self._new_decoders()

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
            if type(value) is not field.kind or field.kind is float:  # else there is nothing to look at
                value = self._converted(field, value)
            values.append(value)
        if b"\\u" in data:
            _refuse_surrogates(self._types, values)
        return values

    def make_columns(self, records: Sequence[bytes]) -> list[list[Any]] | None:
        if type(self).row is not JsonFields.row or type(self).rows is not RecordFormat.rows:
            return None
        try:
            text = _BETWEEN.join(records).decode()
            objects = self._objects(text, len(records))
            columns = list(map(partial(self._column, objects), self._types))
            if "\\u" in text:
                _refuse_surrogates(self._types, columns)
        except (ValueError, RecursionError):  # a record is bad; which of them, and why, is for `rows` to say
            return None
        return columns

    def _objects(self, text: str, count: int) -> list[dict[str, Any]]:
        """Returns what each record holds, read in one call: names of fields are then made once, not for each record.

        Args:
            text: the records, with `NEXT_RECORD` between each two.
            count: how many.

        Raises:
            ValueError: one of them is not exactly one object, as all marks in their places would prove.
        """
        found: list[Any] = (self._flat_decoder if self._are_flat else self._decoder).decode(f"[{text}]")
        marks = count - 1
        is_marked = len(found) == count + marks and found[1::2].count(NEXT_RECORD) == marks
        if not is_marked or text.count(NEXT_RECORD) != marks or _ESCAPED_LETTER.search(text):
            raise ValueError("a record is not one value, or perhaps holds a mark")
        objects = found[::2]
        if {*map(type, objects)} - {dict}:
            raise ValueError("a record is not an object")
        if not self._are_flat or _holds_no_more(text, objects):
            return objects
        self._are_flat = False  # or a name is there twice: this decoder keeps one of its values
        return self._objects(text, count)

    def _column(self, objects: Sequence[dict[str, Any]], field: FieldType) -> list[Any]:
        """Returns the values of one field, of the type that is wanted.

        Raises:
            BadRecordError: one of them is missing or of another type.
        """
        name = field.name
        if NESTED in name:
            values = [_at(found, name) for found in objects]
        else:
            try:
                values = list(map(itemgetter(name), objects))
            except KeyError:
                values = [found.get(name, _MISSING) for found in objects]
        if {*map(type, values)} == {field.kind} and field.kind is not float:
            return values
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

    def _new_decoders(self) -> tuple[json.JSONDecoder, json.JSONDecoder]:
        """Returns one that finds names that are there twice, and a faster one that does not."""
        # made once: json.loads makes one for every record if it is given options
        new = partial(json.JSONDecoder, parse_float=self._parse_float, parse_constant=_refuse_constant)
        return new(object_pairs_hook=by_unique_name), new()

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


def _holds_no_more(text: str, objects: Sequence[dict[str, Any]]) -> bool:
    """Returns whether the names of some objects are all that their text holds: none is there twice, or further inside.

    Each name has a colon after it, and so has each mark, but values may hold colons, too.
    """
    count = sum(map(len, objects))
    marks = len(objects) - 1
    return count + marks == text.count(":") or count == len(_NAME_END.findall(text))


def _at(found: Any, name: str) -> Any:
    """Returns the value of a name with dots: of a field that is called so, or of one within others."""
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
    """A value that nobody gave a type has the floats it would have anyway; one too large for a float is bad."""
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


def _refuse_surrogates(fields: tuple[FieldType, ...], values: list[Any]) -> None:
    """An escape may stand for half a character, which cannot be sent or stored."""
    for field, value in zip(fields, values, strict=True):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise field.wrong(value) from None
