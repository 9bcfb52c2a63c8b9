"""The types a field may have, and how values of JSON, and texts of CSV or Redis Streams, are converted to them.

Strict on purpose: a value that would have to be guessed (`true` for 1, "12" for 12, `1_000`) is bad. Values have to be
packed and compared, so NaN, infinities and lone surrogates are bad. The text form of numbers is in
`state/values/number_text.py`.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias, Union, cast, get_args, get_origin

from coordinated_bolt.streams.records import field_types as hints_of
from coordinated_bolt.streams.records import is_record_class, record_fields
from coordinator.sources.records.record_format import BadRecordError
from state.codec import FINER, exact_time
from state.errors import TopologyError
from state.printable import one_line
from state.values.number_text import decimal_of, decimals_of, float_of, floats_of, integer_of, integers_of

FieldTypes: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Field -> `int`, `float`, `str`, `bytes`, `bool`, `Decimal`, `datetime` or `date`, or one of these ``| None``. Or only
names, for values as they are in the record."""

VALUE_SHOWN = 80


@dataclass(frozen=True, slots=True)
class FieldType:
    """One selected field.

    Attributes:
        name: name of the field.
        kind: the wanted type; None takes any value as it is.
        may_be_none: whether a value may be missing or null, and then becomes None.
    """

    name: str
    kind: type | None = None
    may_be_none: bool = False

    def wrong(self, value: Any) -> BadRecordError:
        """Returns the error for a value of another type."""
        shown = one_line(repr(value), VALUE_SHOWN)
        if self.kind is None or type(value) is self.kind:
            return BadRecordError(
                f"field {self.name!r} is {shown}, which cannot be stored: a float has to be finite, and a text valid "
                "Unicode"
            )
        return BadRecordError(
            f"field {self.name!r} is {shown} of type {type(value).__name__}, which is not {self.kind.__name__}"
            f"{_hint_if_too_fine(self.kind, value)}"
        )

    def missing(self) -> BadRecordError:
        """Returns the error for a missing value."""
        return BadRecordError(f"field {self.name!r} is missing")


def declared_types(fields: Iterable[FieldType]) -> dict[str, Any]:
    """Returns field -> type, as a user would declare it, for the fields that have a type."""
    kinds: dict[str, Any] = {each.name: each.kind for each in fields if each.kind is not None}
    return kinds | {each.name: kinds[each.name] | None for each in fields if each.may_be_none and each.name in kinds}


def record_class_of(given: object) -> type[Any] | None:
    """Returns the record class that a user has given in place of fields, or None (driver).

    Functions of the short form are then given its objects, one for each row; see `Stream`. A default of a field is not
    used: a field that may be missing has a type ``… | None``.
    """
    return cast("type[Any]", given) if is_record_class(given) else None


def checked_fields(owner: str, given: FieldTypes | type[Any]) -> tuple[FieldType, ...]:
    """Returns the fields that a user has asked for (driver).

    Raises:
        TopologyError: no field is given, a name is empty or not a text, or a type is unknown.
    """
    if record_class := record_class_of(given):
        names, hints = record_fields(record_class), hints_of(record_class)
        if not hints:
            raise TopologyError(
                f"{record_class.__name__} of {owner} has no types, or some that cannot be looked up here; annotate "
                "each field, with names that its module knows when it runs"
            )
        given = {name: hints[name] for name in names}
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)) or not given:
        raise TopologyError(
            f"fields={given!r} of {owner} names no fields; give a mapping such as {{'user': str, 'price': Decimal}}, "
            "or a list of names"
        )
    kinds = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)
    if len(kinds) != len(given):
        raise TopologyError(f"fields={given!r} of {owner} names a field twice")
    for name in kinds:
        if not isinstance(name, str) or not name:
            raise TopologyError(f"field {name!r} of {owner} is not a name; give a non-empty text")
    return tuple(_checked(owner, name, kind) for name, kind in kinds.items())


def _checked(owner: str, name: str, given: Any) -> FieldType:
    kind, may_be_none = given, given is None
    if get_origin(given) in (Union, types.UnionType):
        kinds = [each for each in get_args(given) if each is not type(None)]
        may_be_none = len(kinds) < len(get_args(given))
        kind = kinds[0] if len(kinds) == 1 else given
    if kind is None or kind in FROM_TEXT:
        return FieldType(name, kind, may_be_none)
    known = ", ".join(sorted(each.__name__ for each in FROM_TEXT))
    raise TopologyError(f"field {name!r} of {owner} has the type {given!r}; use {known}, or one of these with `| None`")


def from_json(field: FieldType, value: Any) -> Any:
    """Returns a value of JSON as the field's type.

    Only JSON numbers become numbers, but `Decimal` also takes a text, because money is often sent as text. Bytes are
    Base64. Dates and times are ISO 8601.

    Raises:
        BadRecordError: the value has another type.
    """
    kind = field.kind
    if kind is None or type(value) is kind:
        if kind is float and not math.isfinite(value):
            raise field.wrong(value)
        return value
    if value is None:
        if field.may_be_none:
            return None
        raise field.wrong(value)
    try:
        return _JSON_OTHER[kind](value)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise field.wrong(value) from None


def from_text(field: FieldType, text: str) -> Any:
    """Returns a text as the field's type; an empty text becomes None where that is allowed.

    Raises:
        BadRecordError: the text cannot be read as that type.
    """
    if field.kind is str:
        return None if field.may_be_none and not text else text
    if field.kind is None:
        return text
    if field.may_be_none and not text:
        return None
    try:
        return FROM_TEXT[field.kind](text)
    except (ValueError, ArithmeticError):
        raise BadRecordError(
            f"field {field.name!r} is {one_line(repr(text), VALUE_SHOWN)}, which is not {field.kind.__name__}"
            f"{_hint_if_too_fine(field.kind, text)}"
        ) from None


def column_from_text(field: FieldType, texts: Sequence[str]) -> list[Any]:
    """Returns texts without line breaks as values of the field's type, each as by `from_text`.

    Raises:
        ValueError, ArithmeticError: a text cannot be read as that type; `from_text` says which one.
    """
    if field.may_be_none and field.kind is not None and "" in texts:
        made = iter(column_from_text(replace(field, may_be_none=False), [text for text in texts if text]))
        return [next(made) if text else None for text in texts]
    if field.kind is None or field.kind is str:
        return list(texts)
    if many := _MANY_FROM_TEXT.get(field.kind):
        return many(texts)
    return list(map(FROM_TEXT[field.kind], texts))


def _bool(text: str) -> bool:
    known = {"true": True, "false": False}.get(text.lower())
    if known is None:
        raise ValueError(text)
    return known


def _float_of_number(value: Any) -> float:
    if type(value) not in (int, Decimal) or not math.isfinite(number := float(value)):
        raise ValueError(value)
    return number


def _decimal_of_json(value: Any) -> Decimal:
    if type(value) is int:
        return Decimal(value)
    if type(value) is str:
        return decimal_of(value)
    raise ValueError(value)


def _bytes_of_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(value) from error


def _hint_if_too_fine(kind: type, value: Any) -> str:
    """Returns a hint to append to a message about a time with digits below a microsecond; "" for other values."""
    is_finer = kind is dt.datetime and type(value) is str and FINER.search(value)
    return ": it is finer than microseconds, so take it as str" if is_finer else ""


FROM_TEXT: Mapping[Any, Callable[[str], Any]] = {
    bool: _bool,
    bytes: str.encode,
    dt.date: dt.date.fromisoformat,
    dt.datetime: exact_time,
    Decimal: decimal_of,
    float: float_of,
    int: integer_of,
    str: str,
}
"""Type -> function that makes a value of it from a text; the types that a field may have."""

_MANY_FROM_TEXT: Mapping[Any, Callable[[Sequence[str]], list[Any]]] = {
    Decimal: decimals_of,
    float: floats_of,
    int: integers_of,
}
"""Type -> function that makes values of it from many texts at once."""

_JSON_OTHER: Mapping[Any, Callable[[Any], Any]] = {
    bytes: _bytes_of_base64,
    dt.date: dt.date.fromisoformat,  # refuses what is not a text by TypeError
    dt.datetime: exact_time,
    Decimal: _decimal_of_json,
    float: _float_of_number,
}
"""Type -> function that makes a value of it from a JSON value of another type; int, str and bool have to match."""
