"""How values become bytes: msgpack with limits, never pickle.

Extension codes preserve the types of tuples, sets, dates, decimals and integers beyond 64 bits: a tuple that turned
into a list would go unnoticed until a replay differs. Two kinds of value are restored equal but not identical: whatever
`operator.index` accepts, such as a NumPy integer, becomes an int, and a time zone with a fixed offset loses its name.
`bytearray` and `memoryview` are packed as bytes here; `own_copy`, which checks what bolts emit, refuses them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from operator import index
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import msgpack

from state.errors import TransactionError

MAX_BYTES = 256 * 1024 * 1024
"""Largest accepted size of a packed value, far above any frame that txbatch makes."""

MAX_NESTING = 32
"""Limit on nested tuples and sets. Each level takes 40 KB of C stack in msgpack: 170 levels crash a process."""

_TUPLE, _INTEGER, _SET, _FROZENSET, _DATETIME, _DATE, _DECIMAL, _ZONED = range(1, 9)
_DECIMAL_BITS = 2048
"""Integers with more bits are packed in hexadecimal: Python limits the decimal digits that it writes and reads."""
FINER = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")
"""Matches the end of a time that is finer than microseconds."""
_FOLDED = "f"
"""Suffix of a datetime with fold=1: the second of two equal times when clocks were put back."""

Mapper: TypeAlias = Callable[[list[tuple[Any, Any]]], dict[Any, Any]]


class CodecError(TransactionError):
    """A value cannot be packed, or the bytes to unpack are damaged."""


def pack(value: Any) -> bytes:
    """Packs a value of None, bool, int, float, str, bytes, list, tuple, set, dict, date, datetime or Decimal.

    Raises:
        CodecError: the value holds another type or invalid Unicode, or is nested too deeply; the message completes a
            sentence that begins with the value's name.
    """
    return _pack(value, 0)


def _pack(value: Any, nesting: int) -> bytes:
    if nesting > MAX_NESTING:
        raise CodecError(f"nests more than {MAX_NESTING} tuples or sets; flatten it")
    extend = _EXTEND_AT[nesting]
    try:
        packed: bytes = msgpack.packb(value, use_bin_type=True, strict_types=True, default=extend)
    except (TypeError, ValueError, OverflowError, UnicodeError, RecursionError) as error:
        raise CodecError(f"cannot be sent or stored: {error}") from error
    return packed


def unpack(packed: bytes, *, mapping: Mapper | None = None) -> Any:
    """Returns the value that was given to `pack`; raises CodecError for damaged or foreign bytes.

    `mapping` makes a dict from keys and values, because foreign bytes may hold a key twice; its ValueError becomes a
    CodecError.
    """
    return _unpack(packed, 0, mapping)


def _unpack(packed: bytes, nesting: int, mapping: Mapper | None) -> Any:
    if nesting > MAX_NESTING:
        raise CodecError(f"packed value nests more than {MAX_NESTING} tuples or sets")
    if len(packed) > MAX_BYTES:
        raise CodecError(f"packed value has {len(packed)} bytes, more than the limit of {MAX_BYTES}")
    try:
        restore = partial(_restore, nesting + 1, mapping)
        return msgpack.unpackb(
            packed, raw=False, strict_map_key=False, ext_hook=restore, use_list=True, object_pairs_hook=mapping
        )
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError, ArithmeticError) as error:
        raise CodecError(f"packed value is damaged: {error}") from error


def pack_exact(value: Any) -> bytes:
    """Packs a value whose types must survive too, such as stored metadata.

    Raises:
        CodecError: the value does not survive the round trip; the message shows it before and after.
    """
    packed = pack(value)
    restored = unpack(packed)
    if not _is_same(value, restored):
        raise CodecError(f"value {value!r} would be read back as {restored!r}")
    return packed


def pack_strings(strings: Sequence[str | bytes]) -> bytes:
    """Packs strings for a server's Lua, which does not distinguish text from bytes; raises as `pack`."""
    try:
        packed: bytes = msgpack.packb(strings, use_bin_type=False)
    except UnicodeError as error:
        raise CodecError(f"cannot be sent or stored: {error}") from error
    return packed


def is_valid_text(text: str) -> bool:
    """Returns whether text can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest64(*parts: bytes) -> int:
    """Returns the 64-bit content address of the parts, equal in every process."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return int.from_bytes(hasher.digest(), "big")


def is_portable_zone(zone: dt.tzinfo | None) -> bool:
    """Returns whether a packed datetime keeps this time zone: none, a fixed offset, or a named ZoneInfo."""
    return zone is None or type(zone) is dt.timezone or (type(zone) is ZoneInfo and zone.key is not None)


def _extend(nesting: int, value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return msgpack.ExtType(_TUPLE, _pack(list(value), nesting))
    if hasattr(kind, "__index__"):
        return _integer(index(value))
    if kind in (set, frozenset):
        # sort by packed form, so that equal sets have equal bytes in every process
        items = sorted(_pack(item, nesting) for item in value)
        return msgpack.ExtType(_SET if kind is set else _FROZENSET, pack(items))
    if kind is dt.datetime:
        return _datetime(value)
    if kind is dt.date:
        return msgpack.ExtType(_DATE, value.isoformat().encode())
    if kind is Decimal:
        return msgpack.ExtType(_DECIMAL, str(value).encode())
    raise TypeError(f"{value!r} of type {kind.__module__}.{kind.__qualname__}")


def _integer(value: int) -> Any:
    if -(2**63) <= value < 2**64:
        return value  # msgpack packs these itself
    return msgpack.ExtType(_INTEGER, (hex(value) if value.bit_length() > _DECIMAL_BITS else str(value)).encode())


def _datetime(value: dt.datetime) -> msgpack.ExtType:
    zone = value.tzinfo
    if not is_portable_zone(zone):
        raise TypeError(
            f"{value!r} has a time zone of type {type(zone).__module__}.{type(zone).__qualname__}, which cannot be "
            "stored; use zoneinfo.ZoneInfo, or astimezone(datetime.timezone.utc)"
        )
    fold = _FOLDED if value.fold else ""
    if isinstance(zone, ZoneInfo):
        return msgpack.ExtType(_ZONED, f"{value.replace(tzinfo=None).isoformat()}{fold}|{zone.key}".encode())
    return msgpack.ExtType(_DATETIME, f"{value.isoformat()}{fold}".encode())


def exact_time(text: str) -> dt.datetime:
    """Parses a time in ISO 8601.

    Raises:
        ValueError: the text is not such a time, or is finer than microseconds, which Python would cut off.
    """
    if FINER.search(text):
        raise ValueError(f"{text} is finer than microseconds")
    return dt.datetime.fromisoformat(text)


def _restored_datetime(text: str) -> dt.datetime:
    return exact_time(text.removesuffix(_FOLDED)).replace(fold=int(text.endswith(_FOLDED)))


def _restored_zone(key: str) -> ZoneInfo:
    try:
        return ZoneInfo(key)
    except (KeyError, OSError) as error:
        raise ValueError(f"time zone {key!r} is unknown on this machine; install the package tzdata") from error


def _restore(nesting: int, mapping: Mapper | None, code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(_unpack(data, nesting, mapping))
    if code == _INTEGER:
        return int(data, 0)
    if code in (_SET, _FROZENSET):
        items = (_unpack(item, nesting, mapping) for item in _unpack(data, nesting, mapping))
        return set(items) if code == _SET else frozenset(items)
    if code == _DATETIME:
        return _restored_datetime(data.decode())
    if code == _ZONED:
        text, _, key = data.decode().partition("|")
        return _restored_datetime(text).replace(tzinfo=_restored_zone(key))
    if code == _DATE:
        return dt.date.fromisoformat(data.decode())
    if code == _DECIMAL:
        return Decimal(data.decode())
    raise ValueError(f"unknown extension code {code}")


_EXTEND_AT: list[Callable[[Any], Any]] = [partial(_extend, nesting + 1) for nesting in range(MAX_NESTING + 1)]


def _is_same(value: Any, restored: Any) -> bool:
    """Returns whether values and all values inside are equal and of equal types: 1 equals True and 1.0, but differs."""
    kind = type(value)
    if kind is not type(restored):
        return False
    if kind is list or kind is tuple:
        return len(value) == len(restored) and all(map(_is_same, value, restored))
    if kind is float or kind is Decimal:  # NaN is not equal to itself
        return repr(value) == repr(restored)
    if kind is set or kind is frozenset:
        return pack(value) == pack(restored)
    if kind is dict:  # a dict is restored in its order
        return _is_same(list(value), list(restored)) and _is_same(list(value.values()), list(restored.values()))
    return bool(value == restored)
