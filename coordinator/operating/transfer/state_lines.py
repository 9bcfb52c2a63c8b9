"""The lines of an export: each entry of each state as one JSON object, typed as declared. Pure.

The first line names the topology, with the control hash, which holds the declared types. The last line has the number
of lines and their digest, so a truncated file is recognised. A value that its declared type would not restore byte for
byte, such as ``1.50`` in a float state, is written as ``{"base64": ...}``; so are bytes.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from state.codec import pack, unpack
from state.errors import StateRefusedError
from state.keys import RESERVED_NAME, member_name, split_member
from state.kinds.state_family import PartType, part_of_text, part_text
from state.records.declared_states import DescribedState
from state.records.stored_records import OWN_KINDS, StoredPiece, StreamPosition
from state.redis_owner.arguments import float_text
from state.troubles import Trouble
from state.values.number_text import decimal_of
from state.values.state_kind import FieldType, StateKind, TupleType, ValueType
from state.values.value_form import canonical_json, scaled, unscaled

_RAW = "base64"
FIELD_EXPIRES = "field_expires_ms"
_LAST_ID, _ADDED = "last_id", "entries_added"
_COLUMNS = {
    StateKind.HASH: ("field", "value"),
    StateKind.SORTED_SET: ("member", "score"),
    StateKind.SET: ("member", ""),
    StateKind.LIST: ("", "item"),
    StateKind.STREAM: ("id", "entry"),
    StateKind.VALUE: ("", "value"),
    StateKind.HYPERLOGLOG: ("", "registers"),
}
"""Names of the two parts of an entry; empty for a part that a kind does not have."""


def lines_of(piece: StoredPiece, states: Mapping[str, DescribedState]) -> Iterator[dict[str, Any]]:
    """Yields the lines of some entries; called for each piece of an export.

    Raises:
        StateRefusedError: the key's part is not of the declared type.
    """
    head, field_type, value_type, scale = _layout(piece.name, states)
    if piece.expires_ms is not None:
        yield {**head, "expires_ms": piece.expires_ms}
    first, second = _COLUMNS[piece.kind]
    for field, value in piece.entries:
        line = dict(head)
        if first:
            line[first] = to_json(field, field_type)
        if piece.kind is StateKind.STREAM:
            line[second] = _entry(value, value_type, scale)
        elif second:
            stored = _score(value) if piece.kind is StateKind.SORTED_SET else value
            line[second] = to_json(stored, value_type, scale)
        if field in piece.expiries:
            line[FIELD_EXPIRES] = piece.expiries[field]
        yield line
    if piece.position is not None:
        yield {**head, _LAST_ID: piece.position.last_id, _ADDED: piece.position.added}


def _score(stored: bytes) -> bytes:
    """Returns a score in txbatch's spelling, since servers spell numbers in different ways."""
    try:
        number = float(stored)
    except ValueError:
        return stored
    return float_text(number).encode() if math.isfinite(number) else stored


class LineReader:
    """Parses the lines of one export into entries, in order."""

    def __init__(self, states: Mapping[str, DescribedState]) -> None:
        self._states = states
        self._expiries: dict[str, int] = {}

    def read(self, line: Mapping[str, Any]) -> StoredPiece:
        """Returns a piece with the entry of a line; without entries if the line holds an expiry or position.

        Raises:
            ValueError: it is not a line of this export.
        """
        name = self._name(line)
        expires_ms = line.get("expires_ms")
        kind = OWN_KINDS[name] if name in OWN_KINDS else self._states[split_member(name)[0]].kind
        if expires_ms is not None:
            self._expiries[name] = _whole("expires_ms", line)
            return StoredPiece(name, kind, [], expires_ms)
        if kind is StateKind.STREAM and _LAST_ID in line:
            position = StreamPosition(str(line[_LAST_ID]), _whole(_ADDED, line))
            return StoredPiece(name, kind, [], self._expiries.get(name), position=position)
        _, field_type, value_type, scale = _layout(name, self._states)
        first, second = _COLUMNS[kind]
        missing = [column for column in (first, second) if column and column not in line]
        if missing:
            raise ValueError(f"it has no {missing[0]!r}")
        field = from_json(line[first], field_type) if first else b""
        if kind is StateKind.STREAM:
            value = _packed_entry(line[second], value_type, scale)
        else:
            value = from_json(line[second], value_type, scale) if second else b""
        expiries = {field: _whole(FIELD_EXPIRES, line)} if FIELD_EXPIRES in line else {}
        return StoredPiece(name, kind, [(field, value)], self._expiries.get(name), expiries)

    def _name(self, line: Mapping[str, Any]) -> str:
        own = line.get(RESERVED_NAME)
        if own is not None:
            name = f"{RESERVED_NAME}:{own}"
            if name not in OWN_KINDS:
                raise ValueError(f"{own!r} does not belong in an export")
            return name
        state = self._states.get(line.get("state", ""))
        if state is None:
            raise ValueError(f"state {line.get('state')!r} is not declared in the first line")
        if state.part_type is None:
            return state.name
        part = line.get("part")
        expected = int if state.part_type is PartType.INT else str
        if type(part) is not expected:
            raise ValueError(f"part {part!r} of state {state.name!r} is not a {state.part_type.value}")
        text = str(part)
        part_of_text(text, state.part_type)
        return member_name(state.name, text)


def _whole(column: str, line: Mapping[str, Any]) -> int:
    found = line[column]
    if type(found) is not int:
        raise ValueError(f"{column} is {found!r}, expected an integer")
    return found


def _layout(name: str, states: Mapping[str, DescribedState]) -> tuple[dict[str, Any], FieldType, ValueType, int]:
    """Returns the beginning of a state's lines, and the types of its fields and values."""
    if name in OWN_KINDS:
        is_ranked = OWN_KINDS[name] is StateKind.SORTED_SET
        types = (ValueType.STR, ValueType.FLOAT if is_ranked else ValueType.STR)
        return {RESERVED_NAME: name.partition(":")[2]}, *types, 0
    base, text = split_member(name)
    state = states[base]
    head: dict[str, Any] = {"state": base}
    if text is not None and state.part_type is not None:
        try:
            part = part_of_text(text, state.part_type)
        except ValueError:
            raise StateRefusedError(
                f"state {base!r} has a key for the part {text!r}, but is declared with one for each "
                f"{state.part_type.value}; remove the key, or declare the type it has"
            ).about(Trouble.STATE_VALUE) from None
        head["part"] = part if state.part_type is PartType.INT else part_text(part)
    value_type = {StateKind.SORTED_SET: ValueType.FLOAT, StateKind.HYPERLOGLOG: ValueType.BYTES}.get(state.kind)
    return head, state.field_type, value_type or state.value_type, state.scale


def _entry(packed: bytes, value_type: ValueType, scale: int) -> list[Any]:
    """Returns an entry of a stream as pairs of field and value, because JSON objects have only text as names."""
    fields = unpack(packed)
    values = (to_json(value, value_type, scale) for value in fields[1::2])
    return [[to_json(name, ValueType.STR), value] for name, value in zip(fields[::2], values, strict=True)]


def _packed_entry(pairs: Any, value_type: ValueType, scale: int) -> bytes:
    """Inverse of `_entry`.

    Raises:
        ValueError: the argument is not pairs of fields and values of the declared type.
    """
    fields: list[bytes] = []
    for name, value in pairs:
        fields += [from_json(name, ValueType.STR), from_json(value, value_type, scale)]
    return pack(fields)


def to_json(stored: bytes, declared: FieldType, scale: int = 0) -> Any:
    """Returns a JSON value that `from_json` converts back to the same bytes."""
    try:
        value = _decoded(stored, declared, scale)
        is_exact = not _is_raw(value) and from_json(value, declared, scale) == stored
    except (ValueError, OverflowError, RecursionError):
        is_exact = False
    return value if is_exact else {_RAW: base64.b64encode(stored).decode()}


def from_json(value: Any, declared: FieldType, scale: int = 0) -> bytes:
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
            case ValueType.STR | ValueType.DATE | TupleType() if type(value) is str:
                return value.encode()
            case ValueType.DECIMAL if type(value) is str:
                return str(scaled(decimal_of(value), scale)).encode()
            case ValueType.JSON:
                return canonical_json(value).encode()
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{value!r:.100} is not a value of type {declared.value}: {error}") from None
    raise ValueError(f"{value!r:.100} is not a value of type {declared.value}")


def _decoded(stored: bytes, declared: FieldType, scale: int) -> Any:
    match declared:
        case ValueType.INT:
            return int(stored)
        case ValueType.FLOAT:
            number = float(stored)
            if not math.isfinite(number):
                raise ValueError("JSON has no such number")
            return number
        case ValueType.STR | ValueType.DATE | TupleType():
            return stored.decode()
        case ValueType.DECIMAL:
            return str(unscaled(int(stored), scale))
        case ValueType.JSON:
            return json.loads(stored)
        case ValueType.BYTES:
            raise ValueError("bytes have no form in JSON")


def _is_raw(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {_RAW} and isinstance(value[_RAW], str)
