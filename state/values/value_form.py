"""Values that Redis stores in another form: Decimals as integers; dates, JSON and tuples as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from functools import partial
from typing import Any

from state.codec import is_valid_text
from state.errors import StateRefusedError, TopologyError
from state.troubles import Trouble
from state.values.state_kind import MAX_INTEGER, FieldType, TupleType, ValueType
from state.values.whole import is_whole

_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
SCALE_MAX = 15
"""Most digits after the point: an integer in state has 15 full digits."""


@dataclass(frozen=True, slots=True)
class ValueForm:
    """Converts a user's values, or fields, to their stored form (executor), and back.

    A value that cannot be stored raises a TypeError or ValueError with the reason.
    """

    to_stored: Callable[[Any], Any]
    from_stored: Callable[[Any], Any]


def form_of(declared: FieldType, scale: int = 0) -> ValueForm | None:
    """Returns the form of a declared type; None if values are stored unchanged."""
    match declared:
        case TupleType():
            return ValueForm(partial(tuple_text, declared=declared), partial(tuple_of, declared=declared))
        case ValueType.DATE:
            return ValueForm(_date_text, _date_of)
        case ValueType.DECIMAL:
            return ValueForm(lambda value: scaled(value, scale), lambda stored: unscaled(stored, scale))
        case ValueType.JSON:
            return ValueForm(canonical_json, json.loads)
    return None


def check_scale(what: str, value_type: ValueType, scale: int | None) -> int:
    """Returns the declared digits after the point, checked; 0 for values other than Decimals."""
    if value_type is not ValueType.DECIMAL:
        if scale is not None:
            raise TopologyError(f"{what} is given scale {scale!r}, which only Decimal values have; leave it out")
        return 0
    if not is_whole(scale, 0, SCALE_MAX):
        raise TopologyError(
            f"{what} holds Decimals and is given scale {scale!r}; give the digits after the point, from 0 to "
            f"{SCALE_MAX}, as in scale=2"
        )
    return scale


def scaled(value: Any, scale: int) -> int:
    """Returns a Decimal, or an int, as a number of its smallest units; refuses inexact results.

    A float is refused because it rarely is exactly the intended number.
    """
    if type(value) is not int and type(value) is not Decimal:
        raise TypeError(f"is a {type(value).__name__}; give a Decimal or an int")
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError("is not a finite number")
    if number.copy_abs() > _MOST[scale]:
        raise ValueError(f"is outside ±{_MOST[scale]}")
    shifted = number.scaleb(scale, _EXACT)
    units = int(shifted)
    if units != shifted:
        raise ValueError(f"has more than {scale} digits after the point; round it first")
    return units


def are_scalable(values: Iterable[Any], scale: int) -> bool:
    """Returns whether `scaled` takes every value."""
    try:
        for value in values:
            scaled(value, scale)
    except (TypeError, ValueError):
        return False
    return True


def unscaled(units: int, scale: int) -> Decimal:
    """Inverse of `scaled`: always with `scale` digits after the point, whatever the decimal context."""
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))


_MOST = tuple(unscaled(MAX_INTEGER, scale) for scale in range(SCALE_MAX + 1))


def canonical_json(value: Any) -> str:
    """Returns the canonical text of a JSON value: keys sorted, no spaces, characters unescaped.

    A value that would be read back differently, such as a tuple or a key that is not a string, is a TypeError.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
    restored = json.loads(text)
    if restored != value:
        raise TypeError(f"would be read back as {restored!r:.100}; use dicts with text as keys, and lists")
    if not is_valid_text(text):
        raise ValueError("is not valid Unicode")
    return text


def tuple_text(field: Any, declared: TupleType) -> str:
    """Returns the text of a tuple: its values, separated by ``|``; in texts, ``%`` and ``|`` are quoted."""
    types = declared.types
    if not isinstance(field, tuple) or len(field) != len(types):
        raise TypeError(f"give a tuple of {len(types)} values")
    return "|".join([piece_text(*each) for each in zip(field, types, strict=True)])


def stored_bytes(field: Any) -> bytes:
    """Returns the stored bytes of a valid field or member."""
    if isinstance(field, bytes):
        return field
    return ("|".join(_quoted(str(each)) for each in field) if isinstance(field, tuple) else str(field)).encode()


def tuple_of(text: str, declared: TupleType) -> tuple[Any, ...]:
    """Inverse of `tuple_text`, or a ValueError."""
    field = tuple(_of_piece(*each) for each in zip(text.split("|"), declared.types, strict=True))
    if tuple_text(field, declared) != text:
        raise ValueError(f"{text!r} is not how {field!r} is written")
    return field


def piece_text(value: Any, declared: ValueType) -> str:
    """Returns the text of one value of a tuple."""
    if declared is ValueType.DATE:
        return _date_text(value)
    if type(value) is int and declared is ValueType.INT:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise ValueError(f"{value} is outside ±{MAX_INTEGER}")
        return str(value)
    if type(value) is not str or declared is ValueType.INT:
        raise TypeError(f"{value!r:.100} is of type {type(value).__name__}, not {declared.value}")
    if not is_valid_text(value):
        raise ValueError(f"{value!r:.100} is not valid Unicode")
    return _quoted(value)


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace("|", "%7C")


def _of_piece(text: str, declared: ValueType) -> Any:
    if declared is ValueType.STR:
        return text.replace("%7C", "|").replace("%25", "%")
    return int(text) if declared is ValueType.INT else _date_of(text)


def _date_text(value: Any) -> str:
    if type(value) is not date:
        raise TypeError(f"{value!r:.100} is of type {type(value).__name__}, not date")
    return value.isoformat()


def _date_of(text: str) -> date:
    found = date.fromisoformat(text)
    if found.isoformat() != text:
        raise ValueError(f"{text!r} is not how {found} is written")
    return found


def decode_stored(stored: bytes, declared: FieldType, where: str, scale: int = 0) -> Any:
    """Returns a stored value, field or member in its declared type; an error names it by `where`."""
    try:
        match declared:
            case ValueType.INT:
                return int(stored)
            case ValueType.FLOAT:
                return float(stored)
            case ValueType.STR:
                return stored.decode()
            case ValueType.BYTES:
                return stored
        form = form_of(declared, scale)
        assert form is not None
        return form.from_stored(int(stored) if declared is ValueType.DECIMAL else stored.decode())
    except ValueError:
        raise StateRefusedError(
            f"{where} holds {stored[:100]!r}, but is declared as {declared.value}; correct the value, or declare the "
            "type it has"
        ).about(Trouble.STATE_VALUE) from None
