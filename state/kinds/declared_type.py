"""A type that a state declares for its values or fields: checks given values and converts them for storage. Pure.

A type declared as int takes whatever `operator.index` accepts, NumPy integers included, and stores an int; only a bool
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from operator import index
from typing import Any

from state.codec import is_valid_text
from state.errors import TopologyError
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import MAX_INTEGER, FieldType, TupleType, ValueType
from state.values.value_form import are_scalable, form_of, piece_text
from state.values.whole import is_whole

_TYPES: dict[ValueType, type[Any]] = {
    ValueType.INT: int,
    ValueType.FLOAT: float,
    ValueType.STR: str,
    ValueType.BYTES: bytes,
}
KEPT_MAX = 1_000_000
"""Most entries that a bounded state may be declared to keep."""


class DeclaredType:
    """The type of a state's values or fields; called by its handle for each value (executor).

    Args:
        state_name: the state's name, for messages.
        declared: the type.
        scale: digits after the point; 0 except for Decimals.

    Attributes:
        stored: the type of stored values, which differs for Decimals, dates, JSON and tuples.
    """

    def __init__(self, state_name: str, declared: FieldType, scale: int = 0) -> None:
        self.declared, self.scale, self.stored = declared, scale, declared.stored
        self._state_name, self._form = state_name, form_of(declared, scale)

    def to_stored(self, what: str, value: Any) -> Any:
        """Returns the stored form of a value; `what`, such as "field", names the value in messages.

        Raises:
            TypeError, ValueError: the value does not have exactly the declared type, or cannot be stored.
        """
        if self._form is None:
            return self._checked(what, value)
        try:
            return self._form.to_stored(as_int(value))
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"state {self._state_name!r} was given {what} {value!r:.100}, but declares {self.declared.value}: "
                f"{error}"
            ) from None

    def from_stored(self, stored: Any) -> Any:
        """Inverse of `to_stored`."""
        return stored if self._form is None else self._form.from_stored(stored)

    def many_to_stored(self, what: str, values: list[Any]) -> list[Any]:
        """Returns the stored form of each value; see `to_stored`."""
        return values if self.are_stored_as_given(values) else [self.to_stored(what, value) for value in values]

    def are_stored_as_given(self, values: Collection[Any]) -> bool:
        """Returns whether `to_stored` would return every value unchanged; nearly at the speed of C."""
        if self._form is not None or not self.have_plain_type(values):
            return False
        match self.stored:
            case ValueType.INT:
                return not values or (min(values) >= -MAX_INTEGER and max(values) <= MAX_INTEGER)
            case ValueType.FLOAT:
                return all(map(math.isfinite, values))
            case ValueType.STR:
                return is_valid_text("".join(values))
            case _:
                return True

    def have_plain_type(self, values: Collection[Any]) -> bool:
        """Returns whether the values' Python types allow storing them unchanged."""
        return self._form is None and {*map(type, values)} <= {_TYPES[self.stored]}

    def first_wrong(self, what: str, values: Sequence[Any]) -> Wrong | None:
        """Returns the first value that cannot be stored, and why."""
        if self.are_stored_as_given(values) or (
            self.declared is ValueType.DECIMAL and are_scalable(values, self.scale)
        ):
            return None
        return first_wrong(values, lambda value: self.to_stored(what, value))

    def first_wrong_piece(self, place: int, values: Sequence[Any]) -> Wrong | None:
        """Returns the first value that is invalid at a place of this type's tuples, and why."""
        assert isinstance(self.declared, TupleType)
        declared = self.declared.types[place]
        return first_wrong(values, lambda value: piece_text(value, declared))

    def as_float(self, what: str, value: Any) -> Any:
        """Returns the float that equals an integer, and anything else unchanged.

        An integer that no float equals is a ValueError.
        """
        value = as_int(value)
        if type(value) is not int:
            return value
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if number != value:
            shown = value if abs(value) <= 10**30 else f"of {value.bit_length():,} bits"
            raise ValueError(
                f"state {self._state_name!r} was given {what} {shown}, which no float equals; keep such integers in a "
                "state that declares int, or round it with float()"
            )
        return number

    def _checked(self, what: str, value: Any) -> Any:
        stored = self.stored
        if stored is ValueType.INT:
            value = as_int(value)
        if type(value) is not _TYPES[stored]:
            raise TypeError(
                f"state {self._state_name!r} was given {what} {value!r} of type {type(value).__name__}, "
                f"but declares {stored.value}"
            )
        if stored is ValueType.INT and not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise ValueError(f"state {self._state_name!r} was given {what} {value}, outside ±{MAX_INTEGER}")
        if stored is ValueType.FLOAT and not math.isfinite(value):
            raise ValueError(f"state {self._state_name!r} was given {what} {value}, which is not a finite number")
        if stored is ValueType.STR and not is_valid_text(value):
            raise ValueError(f"state {self._state_name!r} was given {what} {value!r}, which is not valid Unicode")
        return value


def as_int(value: Any) -> Any:
    """Returns an int for what `operator.index` accepts, such as a NumPy integer; a bool, a mistake, stays one."""
    if type(value) is int or type(value) is bool:
        return value
    try:
        return index(value)
    except TypeError:
        return value


def declared_type(what: str, given: type | str, allowed: tuple[ValueType, ...] = tuple(ValueType)) -> ValueType:
    """Returns the value type for a declared type or type name."""
    name = given.__name__ if isinstance(given, type) else given
    if name not in [value_type.value for value_type in allowed]:
        raise TopologyError(f"{what} is declared as {name!r}; use one of {', '.join(allowed)}")
    return ValueType(name)


def check_most(what: str, most: object) -> int:
    """Returns the declared number of entries to keep, if it is from 1 to `KEPT_MAX`."""
    if not is_whole(most, 1, KEPT_MAX):
        raise TopologyError(f"{what} is {most!r}; give an integer from 1 to {KEPT_MAX:,}")
    return most
