"""Dead letters as JSON: one object per letter, with values that are distinct and can be restored.

JSON's own types stay as they are. Every other type that a tuple may carry becomes an object with one key that begins
with a dollar sign. A mapping that JSON cannot hold, or that looks like such an object, becomes ``$map``.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from state.commits.dead_letters import DeadLetter


def json_of(letter: DeadLetter) -> dict[str, Any]:
    """Returns a letter as plain data for JSON; called by the commands, once per letter."""
    return {
        "id": letter.letter_id,
        "txid": letter.txid,
        "component": letter.component_id,
        "task": letter.task_index,
        "source": letter.source_component,
        "stream": letter.stream_id,
        "values": {name: json_value(value) for name, value in zip(letter.fields, letter.values, strict=True)},
        "reason": letter.reason,
    }


def json_value(value: Any) -> Any:
    """Returns one value; different values, and values of different types, give different results."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is list:
        return [json_value(item) for item in value]
    if kind is dict:
        return _mapping(value)
    tag, content = _TAGGED[kind](value)
    return {tag: content}


def _mapping(value: dict[Any, Any]) -> dict[str, Any]:
    if all(isinstance(name, str) and not name.startswith("$") for name in value):
        return {name: json_value(item) for name, item in value.items()}
    return {"$map": [[json_value(name), json_value(item)] for name, item in value.items()]}


def _bytes(value: bytes) -> tuple[str, str]:
    try:
        return "$text", value.decode()
    except UnicodeDecodeError:
        return "$bytes", base64.b64encode(value).decode()


def _items(value: Iterable[Any]) -> list[Any]:
    return [json_value(item) for item in value]


_TAGGED: dict[type, Callable[[Any], tuple[str, Any]]] = {
    float: lambda value: ("$float", repr(value)),
    bytes: _bytes,
    tuple: lambda value: ("$tuple", _items(value)),
    set: lambda value: ("$set", sorted(_items(value), key=repr)),
    frozenset: lambda value: ("$frozenset", sorted(_items(value), key=repr)),
    dt.datetime: lambda value: ("$datetime", value.isoformat()),
    dt.date: lambda value: ("$date", value.isoformat()),
    Decimal: lambda value: ("$decimal", str(value)),
}
"""Type -> function that returns tag and content in JSON, for the codec's other types."""
