"""Stored bytes as JSON of their declared type, and back: without loss, whatever is stored. Pure.

Whatever the declared type would not give back byte for byte, such as ``1.50`` in a float state, travels as
``{"base64": ...}``; so do bytes.
"""

from __future__ import annotations

import base64
import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any

from state.redis_topology.arguments import float_text
from state.values.state_kind import ValueType
from state.values.value_form import canonical_json, scaled, unscaled

_RAW = "base64"


def to_json(stored: bytes, declared: ValueType, scale: int = 0) -> Any:
    """Returns JSON from which `from_json` makes the same bytes."""
    try:
        value = _decoded(stored, declared, scale)
        is_exact = not _is_raw(value) and from_json(value, declared, scale) == stored
    except (ValueError, OverflowError, RecursionError):
        is_exact = False
    return value if is_exact else {_RAW: base64.b64encode(stored).decode()}


def from_json(value: Any, declared: ValueType, scale: int = 0) -> bytes:
    """Inverse of `to_json`.

    Raises:
        ValueError: the value is not of the declared type.
    """
    if _is_raw(value):
        return base64.b64decode(value[_RAW], validate=True)
    try:
        match declared:
            case ValueType.INT if type(value) is int:
                return str(value).encode()
            case ValueType.FLOAT if type(value) in (int, float) and float(value) == value:
                return float_text(float(value)).encode()
            case ValueType.STR if type(value) is str:
                return value.encode()
            case ValueType.DECIMAL if type(value) is str:
                return str(scaled(Decimal(value), scale)).encode()
            case ValueType.JSON:
                return canonical_json(value).encode()
    except (TypeError, OverflowError, InvalidOperation) as error:
        raise ValueError(f"{value!r:.100} is not a value of type {declared.value}: {error}") from None
    raise ValueError(f"{value!r:.100} is not a value of type {declared.value}")


def _decoded(stored: bytes, declared: ValueType, scale: int) -> Any:
    match declared:
        case ValueType.INT:
            return int(stored)
        case ValueType.FLOAT:
            number = float(stored)
            if not math.isfinite(number):
                raise ValueError("JSON has no such number")
            return number
        case ValueType.STR:
            return stored.decode()
        case ValueType.DECIMAL:
            return str(unscaled(int(stored), scale))
        case ValueType.JSON:
            return json.loads(stored)
        case ValueType.BYTES:
            raise ValueError("bytes have no form in JSON")


def _is_raw(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_RAW} and isinstance(value[_RAW], str)
