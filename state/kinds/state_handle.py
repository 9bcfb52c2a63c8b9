"""The base of all typed state handles: name, declared types, session, and writes of single values and columns."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence, Set
from decimal import Decimal
from operator import index
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from state.codec import is_valid_text
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.errors import TopologyError
from state.keys import check_name
from state.kinds.session import StateSession
from state.kinds.state_family import ExpireAt, StateFamily
from state.values.column_values import column_values
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import (
    FIELD_TYPES,
    KEEP_ALL,
    MAX_INTEGER,
    TUPLE_TYPES,
    Field,
    FieldType,
    Retention,
    StateKind,
    TupleType,
    ValueType,
)
from state.values.value_form import are_scalable, check_scale, form_of, piece_text
from state.values.whole import is_whole

_TYPES: dict[ValueType, type[Any]] = {
    ValueType.INT: int,
    ValueType.FLOAT: float,
    ValueType.STR: str,
    ValueType.BYTES: bytes,
}
KEPT_MAX = 1_000_000
"""Most entries that a bounded state may be declared to keep."""
_NUMBERS = (ValueType.INT, ValueType.FLOAT, ValueType.DECIMAL)
_MEMBERS = (StateKind.SET, StateKind.HYPERLOGLOG)
Declared = TypeVar("Declared")
"""The declared type of a state's values, or of a set's members."""
if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultingTypeVar  # type checkers know it, installed or not

    Value = DefaultingTypeVar("Value", default=int)
    Item = DefaultingTypeVar("Item", default=str)
else:
    Value, Item = TypeVar("Value"), TypeVar("Item")
Number = TypeVar("Number", bound=int | float | Decimal)


FieldGiven = type | str | tuple[type | str, ...]
"""The declared type of fields or members: a type, its name, or several of them for tuples."""


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


class _DeclaringAlias(GenericAlias):
    """``HashState[float]`` at run time: calling it declares float values."""

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        made: Any = self.__origin__
        return made(*arguments, **{"value": self.__args__[0], **more})


class StateHandle(Generic[Declared]):
    """A named state of one Redis type, with declared types; a live copy follows the session of a committer task.

    Args:
        name: state name; the plain Redis key is ``{topology_id}:name``.

    Raises:
        TopologyError: the name is not valid, or the state cannot hold a declared type.
    """

    kind: StateKind
    value_type: ValueType
    stored_type: ValueType
    field_type: FieldType
    stored_field_type: ValueType = ValueType.STR
    _values: DeclaredType
    _fields: DeclaredType
    scale = 0
    retention: Retention = KEEP_ALL
    fields_expire = False
    """Whether its fields may be given an expiry time."""
    prefetched_by: tuple[str, ...] = ()
    """Names of the tuple fields that hold keys to prefetch; see `KeyedState.prefetch`."""

    if not TYPE_CHECKING:

        def __class_getitem__(cls, declared: Any) -> _DeclaringAlias:
            return _DeclaringAlias(cls, declared)

    def __init__(self, name: str) -> None:
        self.name = check_name("state name", name)
        self._is_declared = False
        self._session: StateSession | None = None
        self._write_set: WriteSet | None = None
        self._writes: StateWrites | None = None

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._is_declared = True

    def per(self, part_name: str, part: type | str = str, *, expire_at: ExpireAt | None = None) -> StateFamily[Self]:
        """Declares one such state for each day, customer or other part, each under its own Redis key.

        ``views = HashState("views").per("day", date)`` is one hash a day: ``self.views[day].increment(page)`` writes to
        ``{topology_id}:views:2026-11-21``.

        Args:
            part_name: what a part stands for, such as "day"; for readers and messages.
            part: type of the parts, ``str``, ``int`` or ``datetime.date``, or its name.
            expire_at: returns when the key of a part expires: a date (its start in UTC), a datetime with a time zone,
                or whole seconds since 1970. It is called with the part alone, in every transaction that writes to it,
                and must always return the same value. None keeps all keys.

        Raises:
            TopologyError: an argument is not valid.
        """
        return StateFamily(self, part_name, part, expire_at)

    def of_tuples(self, width: int) -> Self:
        """Returns this state with keys that are tuples of `width` values, each of the declared field type."""
        made = copy.copy(self)
        made._declare_field("key", (self.field_type.value,) * width)  # noqa: SLF001 - of its own kind
        return made

    def bind(self, session: StateSession) -> Self:
        """Returns a live copy that follows `session`; called by the executor for every instance."""
        live = self.copied(session)
        session.register(live)
        return live

    def copied(self, session: StateSession) -> Self:
        """Returns a copy that belongs to `session` and does not follow it yet."""
        live = object.__new__(type(self))
        live.__dict__.update(self.__dict__)  # a declaration is never attached
        live._session = session
        return live

    def attach(self, write_set: WriteSet) -> None:
        """Called by the session when it opens."""
        self._write_set = write_set

    def detach(self) -> None:
        """Called by the session when it closes."""
        self._write_set = self._writes = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def first_wrong_field(self, fields: Sequence[Any], place: int | None = None) -> Wrong | None:
        """Returns the first value that cannot be a field or member by its type, and why; the state need not be open.

        With a place, the values are those at that place of fields that are tuples. Other faults are found by the write:
        equal fields of one type are the same field, so no other check is needed here.
        """
        if place is not None and isinstance(self.field_type, TupleType):
            return self._fields.first_wrong_piece(place, fields)
        return None if self._fields.have_plain_type(fields) else self._fields.first_wrong("field", fields)

    def first_wrong_increment(self, amounts: Sequence[Any]) -> Wrong | None:
        """Returns the first amount that cannot be added, and why; the state need not be open."""
        if self.value_type is ValueType.DECIMAL:
            return self._values.first_wrong("increment", amounts)
        are_ints = self.value_type is ValueType.FLOAT and {*map(type, amounts)} == {int}
        if are_ints and -MAX_INTEGER <= min(amounts) <= max(amounts) <= MAX_INTEGER:
            return None
        return None if self._values.are_stored_as_given(amounts) else first_wrong(amounts, self._check_delta)

    def first_wrong_value(self, values: Sequence[Any]) -> Wrong | None:
        """Returns the first value that cannot be put, and why; the state need not be open."""
        return self._values.first_wrong("value", values)

    def _open(self) -> StateWrites:
        """Returns the transaction's changes to the state."""
        return self._changes().settled()

    def _changes(self) -> StateWrites:
        """Returns the transaction's changes to the state, created by the first call; some may be held unsettled."""
        writes = self._writes
        if writes is not None:
            return writes
        if self._write_set is None:
            if self._session is None and not self._is_declared:
                made = f"{type(self).__name__}({self.name!r})"
                raise TopologyError(
                    f"state {self.name!r} is not declared: {made} was created at run time, but state belongs in a "
                    f"committer's class; write `{self.name} = {made}` in the class body, and use self.{self.name}"
                )
            raise TopologyError(
                f"state {self.name!r} is open only in finish_batch, as an attribute of self; collect in execute and "
                "write in finish_batch"
            )
        writes = self._writes = self._write_set.state(self.name, self.kind, self.stored_type, self.retention)
        return writes

    def _read(self, fields: list[Any]) -> dict[Field, Any]:
        self._open()
        assert self._session is not None
        return self._session.read(self.name, self.kind, self.stored_type, fields)

    def _declare_value(self, what: str, value: type | str, scale: int | None) -> None:
        self.value_type = declared_type(f"{what} of state {self.name!r}", value)
        self.stored_type = self.value_type.stored
        self.scale = check_scale(f"state {self.name!r}", self.value_type, scale)
        self._values = DeclaredType(self.name, self.value_type, self.scale)

    def _declare_field(self, what: str, field: FieldGiven) -> None:
        said = f"{what} of state {self.name!r}"
        if isinstance(field, tuple):
            if len(field) < 2:
                raise TopologyError(
                    f"{said} is declared as a tuple of {len(field)}; give two types or more, or one type"
                )
            self.field_type = TupleType(tuple(declared_type(said, each, TUPLE_TYPES) for each in field))
        else:
            self.field_type = declared_type(said, field, FIELD_TYPES)
        self.stored_field_type = self.field_type.stored
        self._fields = DeclaredType(self.name, self.field_type)
        if self.kind in _MEMBERS:
            self.value_type = self.stored_type = self.stored_field_type

    def _columns(self, call: str, first: Any, second: Any) -> tuple[list[Any], list[Any]]:
        """Returns the two columns given to a call, as columns or as the items of a mapping."""
        if second is None and isinstance(first, Mapping):
            return list(first), list(first.values())
        columns = (self._column(call, first), self._column(call, second))
        if len(columns[0]) != len(columns[1]):
            raise ValueError(
                f"{call} of state {self.name!r} was given columns of {len(columns[0]):,} and {len(columns[1]):,} "
                "values; give one value for each field"
            )
        return columns

    def _column(self, call: str, column: Any) -> list[Any]:
        values = column_values(column)
        if values is None:
            raise TypeError(
                f"{call} of state {self.name!r} was given {column!r:.100}, a {type(column).__name__}, as a column; "
                "give a list"
            )
        return values

    def _members(self, call: str, members: Any) -> list[Any]:
        """Returns the members given to a call, in any order."""
        return list(members) if isinstance(members, (Set, Mapping)) else self._column(call, members)

    def _check_delta(self, by: Any) -> Any:
        if self.value_type is ValueType.FLOAT:
            by = self._values.as_float("increment", by)
        if self.value_type not in _NUMBERS:
            raise TypeError(f"state {self.name!r} holds {self.value_type.value} values and cannot be incremented")
        return self._values.to_stored("increment", by)

    def _put_plain(self, fields: list[Any], values: list[Any]) -> bool:
        """Puts columns at once if single calls would store all values unchanged; returns whether it did."""
        writes = self._open()
        if writes.increments or writes.deletes or not self._fields.are_stored_as_given(fields):
            return False
        if self.retention.is_ranked or (self.kind not in _MEMBERS and not self._values.are_stored_as_given(values)):
            return False
        writes.puts.update(zip(fields, values, strict=True))
        return True

    def _add_plain_floats(self, fields: list[Any], amounts: list[Any]) -> bool:
        """Adds columns at once if single calls would add all amounts as floats; returns whether it did."""
        kinds = {*map(type, amounts)}
        if kinds == {int} and -(2**53) <= min(amounts) <= max(amounts) <= 2**53:
            amounts = list(map(float, amounts))
        elif kinds != {float} or not all(map(math.isfinite, amounts)):
            return False
        writes = self._open()
        if writes.puts or writes.deletes or not self._fields.are_stored_as_given(fields):
            return False
        increments = writes.increments
        for field, by in zip(fields, amounts, strict=True):
            if (known := increments.get(field)) is None:
                increments[field] = [by]
            else:
                known[0] += by
        return True

    def _add(self, field: Field, by: Any) -> None:
        """Adds a checked delta; the floats of one transaction add up to a single delta."""
        writes = self._open()
        if writes.value_type is ValueType.INT or field in writes.puts or field in writes.deletes:
            writes.increment(field, by)
        elif field in writes.increments:
            writes.increments[field][0] += by
        else:
            writes.increments[field] = [by]
