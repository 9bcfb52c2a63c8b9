"""The declaration of a state: its Redis type, the types of its values and fields, and its retention. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

MAX_INTEGER = 2**53 - 1
"""Largest magnitude of an integer in state; up to this, Lua's numbers are exact."""

Field = str | bytes | int
"""A field or member, as stored."""
GivenField = Field | date | tuple[str | int | date, ...]
"""A field or member, as users give it."""
VALUE_FIELD = ""
"""The only field of a `ValueState` or a `ListState`."""


class StateKind(StrEnum):
    """The kind of a state; each value but HYPERLOGLOG's equals the reply to TYPE."""

    HASH = "hash"
    VALUE = "string"
    SET = "set"
    SORTED_SET = "zset"
    LIST = "list"
    STREAM = "stream"
    HYPERLOGLOG = "hyperloglog"

    @property
    def redis_type(self) -> str:
        """TYPE's reply for a key of this kind."""
        return StateKind.VALUE.value if self is StateKind.HYPERLOGLOG else self.value


class ValueType(StrEnum):
    """Declared type of a state's values.

    The last three are stored as one of the others (`stored`): a Decimal as an integer of its smallest units, JSON and
    dates as text.
    """

    INT = "int"
    FLOAT = "float"
    STR = "str"
    BYTES = "bytes"
    DECIMAL = "Decimal"
    JSON = "json"
    DATE = "date"

    @property
    def stored(self) -> ValueType:
        """The type that is written, added up and checked."""
        return _STORED.get(self, self)


_STORED = {ValueType.DECIMAL: ValueType.INT, ValueType.JSON: ValueType.STR, ValueType.DATE: ValueType.STR}
FIELD_TYPES = (ValueType.STR, ValueType.INT, ValueType.BYTES, ValueType.DATE)
"""The types of fields and members."""
TUPLE_TYPES = (ValueType.STR, ValueType.INT, ValueType.DATE)
"""The types of values in fields and members that are tuples."""


@dataclass(frozen=True, slots=True)
class TupleType:
    """Declared type of fields, or members, that are tuples; stored as text such as ``ann|2026-11-21``."""

    types: tuple[ValueType, ...]
    stored = ValueType.STR

    @property
    def value(self) -> str:
        """Its name, such as "str|date"."""
        return "|".join(self.types)


FieldType = ValueType | TupleType


def field_type_of(name: str) -> FieldType:
    """Inverse of ``value``, or a ValueError."""
    types = tuple(map(ValueType, name.split("|")))
    return TupleType(types) if len(types) > 1 else types[0]


class KeptEnd(StrEnum):
    """The end at which a bounded state keeps entries."""

    HIGHEST = "highest"
    LOWEST = "lowest"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Retention:
    """How much a state keeps, and for how long.

    Attributes:
        side: the end at which entries stay; None if all stay.
        most: how many entries stay; 0 without a side.
        expires_ms: when the key expires, in milliseconds since 1970; None if it does not. Every commit that writes to
            the key sets it, so it does not depend on the key's past.
    """

    side: KeptEnd | None = None
    most: int = 0
    expires_ms: int | None = None

    @property
    def is_ranked(self) -> bool:
        """Whether the members with the best scores stay; each member then keeps its best score."""
        return self.side is KeptEnd.HIGHEST or self.side is KeptEnd.LOWEST

    def is_better(self, score: float, than: float) -> bool:
        """Returns whether a ranked member takes `score` in place of `than`."""
        return score > than if self.side is KeptEnd.HIGHEST else score < than

    def to_wire(self) -> list[Any]:
        """Returns plain data for the codec; empty if everything is kept."""
        return [] if self is KEEP_ALL else [self.side and self.side.value, self.most, self.expires_ms]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Retention:
        if not wire:
            return KEEP_ALL
        side, most, expires_ms = wire
        return cls(side and KeptEnd(side), most, expires_ms)


KEEP_ALL = Retention()
