"""Checks that values may travel in a tuple, and makes copies that nobody else can change.

Bolts keep what they emit: a list that is emitted and then appended to must arrive as it was when it was emitted, on
every engine, however late it is packed. Immutable values are not copied.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from decimal import Decimal
from operator import index, is_
from types import NoneType
from typing import Any

from state.codec import MAX_NESTING, CodecError, is_portable_zone

TRAVELLING_TYPES = (
    "None, bool, int, float, str, bytes, list, tuple, set, frozenset, dict, date, Decimal, or datetime without a time "
    "zone, with a fixed offset or with a ZoneInfo"
)
"""The allowed values, for messages."""

ATOMS = frozenset({NoneType, bool, int, float, bytes, dt.date, Decimal})
"""Types whose values travel unchanged; so does text, if it is valid Unicode."""

MAX_DEPTH = 250
"""Limit on nested lists and mappings; msgpack packs twice as many, and Python's recursion limit is higher too."""

_ATOMS_AND_TEXT = ATOMS | {str}
_HINTS = {
    bytearray: "send bytes(value)",
    memoryview: "send bytes(value)",
    dt.timedelta: "send value.total_seconds()",
    dt.time: "send value.isoformat()",
}


def own_copy(value: Any) -> Any:
    """Returns the value, or a copy if it is mutable; called for each value of an emitted row that is not plain.

    Any value that `operator.index` accepts becomes an int. A CodecError's message completes a sentence that begins with
    the holder of the value.
    """
    try:
        return _copied(value, 0, 0)
    except RecursionError:
        raise _too_deep() from None


def check_text(text: str) -> None:
    """Refuses text that holds half a surrogate pair, which cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CodecError(
            f"holds {text[:100]!r}, which is not valid Unicode at position {error.start}; send it as bytes, or replace "
            "the invalid characters"
        ) from None


def _copied(value: Any, depth: int, nesting: int) -> Any:
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is str:
        if not value.isascii():
            check_text(value)
        return value
    if depth > MAX_DEPTH:
        raise _too_deep()
    if kind is list:
        return list(_items(value, depth, nesting))
    if kind is dict:
        keys = _items(value, depth, nesting)
        return dict(zip(keys, _items(value.values(), depth, nesting), strict=True))
    if kind is not tuple and kind is not set and kind is not frozenset:
        return _rare(value)
    if nesting == MAX_NESTING:
        raise _too_deep()
    items = kind(_items(value, depth, nesting + 1))
    return value if kind is tuple and all(map(is_, items, value)) else items


def _items(items: Collection[Any], depth: int, nesting: int) -> Iterable[Any]:
    kinds = {*map(type, items)}
    if kinds <= ATOMS:
        return items
    if not kinds <= _ATOMS_AND_TEXT:
        return [item if type(item) in ATOMS else _copied(item, depth + 1, nesting) for item in items]
    for item in items:
        if type(item) is str and not item.isascii():
            check_text(item)
    return items


def _rare(value: Any) -> Any:
    kind = type(value)
    if kind is dt.datetime:
        if is_portable_zone(value.tzinfo):
            return value
        zone = type(value.tzinfo)
        raise CodecError(
            f"holds {_shown(value)} in a time zone of type {zone.__module__}.{zone.__qualname__}; "
            "use zoneinfo.ZoneInfo, or astimezone(datetime.timezone.utc)"
        )
    if hasattr(kind, "__index__"):
        try:
            return index(value)
        except TypeError:  # an array that is not a single integer
            pass
    hint = _HINTS.get(kind, f"send one of {TRAVELLING_TYPES}")
    if kind.__module__ == "numpy":
        hint = "send value.item(), or value.tolist() for an array"
    raise CodecError(f"holds {_shown(value)} of type {kind.__module__}.{kind.__qualname__}; {hint}")


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except Exception as error:  # noqa: BLE001 - a value's own repr may raise anything
        return f"a value whose repr raised {type(error).__name__}"


def _too_deep() -> CodecError:
    return CodecError(
        f"nests more than {MAX_DEPTH} lists or mappings, or more than {MAX_NESTING} tuples or sets; flatten it"
    )
