"""One form for all values that Python considers equal, so that they hash alike everywhere.

``1 == 1.0 == True == Decimal("1.00")``, mappings are equal whatever the order of their items, and equal instants in
different time zones are equal too. Groupings that send equal values to one task hash this form. Different values may
share a form: they then share a task, which does no harm. State keys are unaffected: they keep their declared type.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from operator import index
from types import NoneType
from typing import Any

from state.codec import CodecError, pack

_MOST_DIGITS = 4_000
"""Longer decimals are not expanded into integers: no such integer occurs in practice, so only decimals equal them."""

_EPOCH = dt.datetime(1, 1, 1)  # noqa: DTZ001 - naive, to count from
_MICROSECOND = dt.timedelta(microseconds=1)
_NAN = ["nan"]
_HAVE_ONE_FORM = frozenset({NoneType, bytes, dt.date, int, str})


def canonical_bytes(values: Sequence[Any]) -> bytes:
    """Returns the values as bytes, equal for equal values in every process and on every machine.

    Raises:
        CodecError: a value cannot travel.
    """
    if len(values) == 1:
        (value,) = values
        if type(value) is str:
            return value.encode("utf-8", "surrogatepass")
        if type(value) is int:
            return _digits(value)
    for value in values:
        if type(value) not in _HAVE_ONE_FORM:
            return _bytes_of_forms(values)
    return pack(list(values))


def _bytes_of_forms(values: Sequence[Any]) -> bytes:
    try:
        forms = [_canonical(value) for value in values]
    except RecursionError:
        raise CodecError("cannot be hashed: it nests too many lists; flatten it") from None
    return _digits(forms[0]) if len(forms) == 1 and type(forms[0]) is int else pack(forms)


def _digits(value: int) -> bytes:
    try:
        return b"%d" % value
    except ValueError:  # too long for Python to write as a decimal
        return b"%x" % value


def _canonical(value: Any) -> Any:
    kind = type(value)
    if kind in _HAVE_ONE_FORM:
        return value
    form = _FORMS.get(kind)
    if form is not None:
        return form(value)
    return index(value) if hasattr(kind, "__index__") else value  # the codec refuses what cannot travel


def _list(value: list[Any]) -> Any:
    return [_canonical(item) for item in value]


def _tuple(value: tuple[Any, ...]) -> Any:
    return tuple([_canonical(item) for item in value])


def _mapping(value: dict[Any, Any]) -> Any:
    if _are_text(value):  # all equal mappings take this branch
        return ["mapping", *[[name, _canonical(value[name])] for name in sorted(value)]]
    return ["mapping", *sorted(pack([_canonical(key), _canonical(item)]) for key, item in value.items())]


def _set(value: Collection[Any]) -> Any:
    if _are_text(value):
        return ["set", *sorted(value)]
    return ["set", *sorted(pack(_canonical(item)) for item in value)]


def _are_text(values: Collection[Any]) -> bool:
    return {*map(type, values)} == {str}


def _float(value: float) -> Any:
    if math.isnan(value):
        return _NAN
    return int(value) if value.is_integer() else value


def _decimal(value: Decimal) -> Any:
    if not value.is_finite():
        return _NAN if value.is_nan() else float(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(text)
    if not text:
        return 0
    if exponent >= 0 and len(text) + exponent <= _MOST_DIGITS:
        return (-1 if sign else 1) * int(text) * 10**exponent
    nearest = float(value)
    is_float = Decimal.from_float(nearest) == value  # noqa: FURB164 - the constructor may be trapped by the context
    return nearest if is_float else ["decimal", sign, text, exponent]


def _moment(value: dt.datetime) -> Any:
    """Ignores `fold`: when clocks are put back, one reading means two moments, which Python considers equal."""
    first = value.replace(fold=0)
    offset = first.utcoffset()
    since = first.replace(tzinfo=None) - _EPOCH
    return ["moment", since // _MICROSECOND] if offset is None else ["instant", (since - offset) // _MICROSECOND]


_FORMS: dict[type, Callable[[Any], Any]] = {
    float: _float,
    list: _list,
    tuple: _tuple,
    dict: _mapping,
    set: _set,
    frozenset: _set,
    Decimal: _decimal,
    dt.datetime: _moment,
}
