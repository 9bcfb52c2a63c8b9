"""A Redis hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex, overload

from state.commits.write_set import WriteSet
from state.kinds.keyed_state import KeyedState
from state.kinds.session import MISSING
from state.kinds.state_handle import FieldGiven, Number, Value
from state.values.expiry import When, expiry_ms
from state.values.state_kind import MAX_INTEGER, FieldType, GivenField, StateKind, ValueType

_MIN_INTEGER = -MAX_INTEGER


class _InOtherForm:
    """A type that no field has, for field types that are never stored unchanged."""


def _is_in_range(field: int) -> bool:
    return _MIN_INTEGER <= field <= MAX_INTEGER


_PLAIN: dict[FieldType, tuple[type[Any], Callable[[Any], bool]]] = {
    ValueType.STR: (str, str.isascii),
    ValueType.INT: (int, _is_in_range),
    ValueType.BYTES: (bytes, bool),
}


class HashState(KeyedState[Value]):
    """A Redis hash: field -> value. ``HashState[float]("sums")`` is another way to write ``HashState("sums", float)``.

    Args:
        name: state name.
        value: type of the values: ``int``, ``float``, ``str``, ``bytes``, ``Decimal`` or ``"json"``; or its name.
        field: type of the fields, ``str``, ``int``, ``bytes`` or ``date``, or its name. Several types (except bytes),
            such as ``(str, date)``, declare tuples, which Redis stores as ``ann|2026-11-21``.
        scale: the digits after the point of Decimals; they are stored as integers of the smallest unit, so any client
            reads 12.34 as 1234.
        fields_expire: whether fields may be given an expiry time, see `put`. That takes Redis 7.4 or Valkey 9, and such
            fields cannot be incremented, since the old value may be gone.
    """

    kind = StateKind.HASH

    @overload
    def __init__(
        self,
        name: str,
        value: type[Value] = ...,
        field: FieldGiven = str,
        *,
        scale: int | None = None,
        fields_expire: bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self: HashState[Any],
        name: str,
        value: str,
        field: FieldGiven = str,
        *,
        scale: int | None = None,
        fields_expire: bool = False,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        value: type | str = int,
        field: FieldGiven = str,
        *,
        scale: int | None = None,
        fields_expire: bool = False,
    ) -> None:
        super().__init__(name)
        self._declare_value("value", value, scale)
        self._declare_field("field", field)
        self.fields_expire = fields_expire
        self._is_counting = False
        self._counts: dict[Any, int] | None = None
        self._plain_field, self._is_fine = _PLAIN.get(self.field_type, (_InOtherForm, bool))

    def attach(self, write_set: WriteSet) -> None:
        """Called by the session when it opens."""
        self._write_set = write_set
        self._is_counting = self.value_type is ValueType.INT and not self.fields_expire

    def detach(self) -> None:
        """Called by the session when it closes."""
        self._write_set = self._writes = self._counts = None
        self._is_counting = False

    def _stop_counting(self) -> None:
        self._is_counting, self._counts = False, None

    def increment(self: HashState[Number], field: GivenField | SupportsIndex, by: Number | SupportsIndex = 1) -> None:
        """Adds `by` to a field, starting from 0 if it is missing; the hot path of most committers.

        Raises:
            TypeError, ValueError: field or amount has the wrong type or is out of range.
        """
        counts = self._counts
        if counts is None and self._is_counting:  # open, of integers, and only incremented so far
            counts = self._counts = self._open().increments
        if (
            counts is not None
            and type(by) is int
            and type(field) is self._plain_field
            and _MIN_INTEGER <= by <= MAX_INTEGER
        ):
            known = counts.get(field)
            if known is not None:
                counts[field] = known + by
                return
            if self._is_fine(field):
                counts[field] = by
                return
        if self.fields_expire:
            raise TypeError(
                f"state {self.name!r} was given an increment, but its fields expire: what it is added to may be gone; "
                "put values, or count in parts that expire, as in per(...)"
            )
        by = self._check_delta(by)
        self._add(self._fields.to_stored("field", field), by)

    def increment_many(
        self: HashState[Number],
        fields: Mapping[Any, Number] | Iterable[GivenField | SupportsIndex],
        amounts: Iterable[Number | SupportsIndex] | None = None,
    ) -> None:
        """Adds to many fields; like calling `increment` for each, but many times faster.

        Args:
            fields: the fields, which may repeat; or a mapping of fields to amounts.
            amounts: one for each field.

        Raises:
            TypeError, ValueError: as `increment`, and some fields may already be incremented; or the columns differ in
                length.
        """
        keys, deltas = self._columns("increment_many", fields, amounts)
        is_plain = self._is_counting and keys and self._fields.are_stored_as_given(keys)
        if is_plain and self._changes().hold(keys, deltas):
            return
        if self.value_type is ValueType.FLOAT and not self.fields_expire and self._add_plain_floats(keys, deltas):
            return
        for field, by in zip(keys, deltas, strict=True):
            self.increment(field, by)

    def put(self, field: GivenField | SupportsIndex, value: Value, *, expire_at: When | None = None) -> None:
        """Sets a field.

        Args:
            field: its name.
            value: its new value.
            expire_at: when the field expires: a date (its start in UTC), a datetime with a time zone, or whole seconds
                since 1970, up to the year 4199. It is part of the write, so take it from the tuple and not from the
                clock. None, here or in a later put, keeps the field.

        Raises:
            TypeError, ValueError: field, value or time has the wrong type or is out of range.
        """
        expires_ms = None if expire_at is None else self._expiry_ms(expire_at, [field])
        value = self._values.to_stored("value", value)
        checked, writes = self._fields.to_stored("field", field), self._open()
        writes.put(checked, value)
        writes.expire([checked], expires_ms)
        self._stop_counting()

    def put_many(
        self,
        fields: Mapping[Any, Value] | Iterable[GivenField | SupportsIndex],
        values: Iterable[Value] | None = None,
        *,
        expire_at: When | None = None,
    ) -> None:
        """Sets many fields; like calling `put` for each in order, but many times faster.

        Args:
            fields: the fields; if one repeats, its last value counts. Or a mapping of fields to values.
            values: one for each field.
            expire_at: when all of these fields expire; see `put`.

        Raises:
            TypeError, ValueError: as `put`, and some fields may already be set; or the columns differ in length.
        """
        keys, column = self._columns("put_many", fields, values)
        expires_ms = None if expire_at is None else self._expiry_ms(expire_at, keys)
        if self._put_plain(keys, column):
            self._open().expire(keys, expires_ms)
        else:
            for field, value in zip(keys, column, strict=True):
                self.put(field, value, expire_at=expire_at)
        self._stop_counting()

    def _expiry_ms(self, expire_at: When, fields: list[Any]) -> int:
        shown, more = ", ".join(map(repr, fields[:1])), ", …" if len(fields) > 1 else ""
        said = f"state {self.name!r} was given expire_at {expire_at!r:.100} for field {shown:.100}{more}"
        if not self.fields_expire:
            raise TypeError(f"{said}, but its fields do not expire; declare it with fields_expire=True")
        return expiry_ms(expire_at, said)

    def delete(self, field: GivenField | SupportsIndex) -> None:
        """Removes a field if it exists."""
        self._open().delete(self._fields.to_stored("field", field))
        self._stop_counting()

    def get(self, field: GivenField | SupportsIndex) -> Value | None:
        """Returns the field's value, or None.

        Raises:
            StaleReadError: this attempt was overtaken and is replayed.
            StateRefusedError: the stored value does not have the declared type.
        """
        (value,) = self.get_many([field]).values()
        return value

    def get_many(self, fields: Iterable[GivenField | SupportsIndex]) -> dict[Any, Value | None]:
        """Returns field -> value or None, in one round trip.

        Raises:
            StaleReadError, StateRefusedError: as `get`.
        """
        wanted = list(dict.fromkeys(self._fields.many_to_stored("field", list(fields))))
        found = self._read(wanted) if wanted else {}
        return {
            self._fields.from_stored(field): None if value is MISSING else self._values.from_stored(value)
            for field, value in found.items()
        }
