"""How values become bytes: msgpack with limits, never pickle.

Tuples, sets, dates, decimals and integers beyond 64 bits keep their type by extension codes, because
a tuple that comes back as a list is the kind of change nobody notices until a replay differs.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import msgpack

from state.errors import TransactionError

MAX_BYTES = 256 * 1024 * 1024
"""Largest packed value accepted, far above any frame txbatch makes."""

MAX_NESTING = 32
"""Tuples and sets within each other. msgpack takes 40 KB of C stack for each: 170 of them crash a process."""

_TUPLE, _INTEGER, _SET, _FROZENSET, _DATETIME, _DATE, _DECIMAL = range(1, 8)


class CodecError(TransactionError):
    """A value cannot be packed, or bytes are not what was packed."""


def pack(value: Any) -> bytes:
    """Packs a value of None, bool, int, float, str, bytes, list, tuple, set, dict, date or Decimal.

    Raises:
        CodecError: the value holds another type, text that is not valid Unicode, or is nested too deep.
    """
    return _pack(value, 0)


def _pack(value: Any, nesting: int) -> bytes:
    if nesting > MAX_NESTING:
        raise CodecError(f"value has more than {MAX_NESTING} tuples or sets within each other: flatten it")
    extend = _EXTEND_AT[nesting]
    try:
        packed: bytes = msgpack.packb(value, use_bin_type=True, strict_types=True, default=extend)
    except (TypeError, ValueError, OverflowError, UnicodeError, RecursionError) as error:
        raise CodecError(f"cannot be sent or stored: {error}") from error
    return packed


def unpack(packed: bytes) -> Any:
    """Returns the value `pack` was given.

    Raises:
        CodecError: the bytes are torn, too large or not ours.
    """
    return _unpack(packed, 0)


def _unpack(packed: bytes, nesting: int) -> Any:
    if nesting > MAX_NESTING:
        raise CodecError(f"packed value has more than {MAX_NESTING} tuples or sets within each other")
    if len(packed) > MAX_BYTES:
        raise CodecError(f"packed value of {len(packed)} bytes is over the limit of {MAX_BYTES}")
    try:
        restore = _RESTORE_AT[nesting]
        return msgpack.unpackb(packed, raw=False, strict_map_key=False, ext_hook=restore, use_list=True)
    except (ValueError, msgpack.UnpackException, RecursionError, TypeError, ArithmeticError) as error:
        raise CodecError(f"packed value is damaged: {error}") from error


def pack_exact(value: Any) -> bytes:
    """Packs a value that must come back equal and of the same types, as stored metadata must.

    Raises:
        CodecError: the value does not survive the round trip; the message shows both.
    """
    packed = pack(value)
    restored = unpack(packed)
    if restored != value or _shape(restored) != _shape(value):
        raise CodecError(f"value {value!r} comes back from storage as {restored!r}")
    return packed


def digest64(*parts: bytes) -> int:
    """64-bit content address of the parts, the same in every process."""
    hasher = hashlib.blake2b(digest_size=8)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return int.from_bytes(hasher.digest(), "big")


def _extend(nesting: int, value: Any) -> msgpack.ExtType:
    kind = type(value)
    if kind is tuple:
        return msgpack.ExtType(_TUPLE, _pack(list(value), nesting))
    if kind is int:
        return msgpack.ExtType(_INTEGER, str(value).encode())
    if kind in (set, frozenset):
        # sorted by packed form: equal sets have equal bytes in every process
        items = sorted(_pack(item, nesting) for item in value)
        return msgpack.ExtType(_SET if kind is set else _FROZENSET, pack(items))
    if kind is dt.datetime:
        return msgpack.ExtType(_DATETIME, value.isoformat().encode())
    if kind is dt.date:
        return msgpack.ExtType(_DATE, value.isoformat().encode())
    if kind is Decimal:
        return msgpack.ExtType(_DECIMAL, str(value).encode())
    raise TypeError(f"{value!r} of type {kind.__module__}.{kind.__qualname__}")


def _restore(nesting: int, code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(_unpack(data, nesting))
    if code == _INTEGER:
        return int(data)
    if code in (_SET, _FROZENSET):
        items = (_unpack(item, nesting) for item in _unpack(data, nesting))
        return set(items) if code == _SET else frozenset(items)
    if code == _DATETIME:
        return dt.datetime.fromisoformat(data.decode())
    if code == _DATE:
        return dt.date.fromisoformat(data.decode())
    if code == _DECIMAL:
        return Decimal(data.decode())
    raise ValueError(f"unknown extension code {code}")


_EXTEND_AT: list[Callable[[Any], msgpack.ExtType]] = [
    partial(_extend, nesting + 1) for nesting in range(MAX_NESTING + 1)
]
_RESTORE_AT: list[Callable[[int, bytes], Any]] = [partial(_restore, nesting + 1) for nesting in range(MAX_NESTING + 1)]


def _shape(value: Any) -> Any:
    """The types inside a value, to tell 1 from True and 1.0."""
    if isinstance(value, dict):
        return {key: (type(key), _shape(item)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return (type(value), [_shape(item) for item in value])
    return type(value)
