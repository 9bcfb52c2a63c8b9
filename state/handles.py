"""Typed state handles: how a committer names, changes and reads state. Each is one plain Redis type.

A committer declares handles as class attributes. Those are descriptions, and using them raises; while
`finish_batch` runs, the instance has live copies from the executor. Handles only collect changes:
nothing is written until the group is published.

A type declared as int takes whatever `operator.index` accepts, NumPy integers included, and keeps an int; only a
bool is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from state.errors import TopologyError
from state.session import MISSING, StateSession
from state.state_handle import FIELD_TYPES, StateHandle, as_float, declared_type
from state.write_set import MAX_INTEGER, VALUE_FIELD, StateKind, StateWrites, ValueType

_MIN_INTEGER = -MAX_INTEGER
_TEXT = (ValueType.STR, ValueType.BYTES, ValueType.INT)


class HashState(StateHandle):
    """A Redis hash: field -> value.

    Args:
        name: state name.
        value: type of the values, ``int``, ``float``, ``str`` or ``bytes``, or its name.
        field: type of the fields, ``str``, ``int`` or ``bytes``, or its name.
    """

    kind = StateKind.HASH

    def __init__(self, name: str, value: type | str = int, field: type | str = str) -> None:
        super().__init__(name)
        self.value_type = declared_type(f"value of state {name!r}", value)
        self.field_type = declared_type(f"field of state {name!r}", field, FIELD_TYPES)
        self._counts: dict[Any, int] | None = None
        self._is_text = self.field_type is ValueType.STR
        self._plain_field: type[Any] = {ValueType.STR: str, ValueType.INT: int, ValueType.BYTES: bytes}[self.field_type]

    def attach(self, writes: StateWrites) -> None:
        """Called by the session when it opens."""
        super().attach(writes)
        self._counts = writes.increments if self.value_type is ValueType.INT else None

    def detach(self) -> None:
        """Called by the session when it closes."""
        super().detach()
        self._counts = None

    def increment(self, field: Any, by: Any = 1) -> None:
        """Adds `by` to a field, starting from 0 if it is missing; the hot path of most committers.

        Raises:
            TypeError, ValueError: field or amount has the wrong type or is out of range.
        """
        counts = self._counts  # not None: the handle is open, holds integers, and was only incremented so far
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
            if not self._is_text or field.isascii():
                counts[field] = by
                return
        by = self._check_delta(by)
        self._add(self._check("field", field, self.field_type), by)

    def increment_many(self, fields: Mapping[Any, Any] | Iterable[Any], amounts: Iterable[Any] | None = None) -> None:
        """Adds to many fields; like calling `increment` for each, but many times faster.

        Args:
            fields: the fields, any of them more than once; or a mapping of fields to amounts.
            amounts: one for each field.

        Raises:
            TypeError, ValueError: as `increment`; some fields may already be incremented. Or these are not two columns
                of one length.
        """
        keys, deltas = self._columns("increment_many", fields, amounts)
        counts = self._counts
        if counts is None or not self._are_plain(keys, self.field_type) or not self._are_plain(deltas, ValueType.INT):
            for field, by in zip(keys, deltas, strict=True):
                self.increment(field, by)
            return
        once = dict(zip(keys, deltas, strict=True))
        if len(once) < len(keys):
            for field, by in zip(keys, deltas, strict=True):
                counts[field] = counts.get(field, 0) + by
            return
        for field in counts.keys() & once.keys():
            once[field] += counts[field]
        counts.update(once)

    def put(self, field: Any, value: Any) -> None:
        """Sets a field.

        Raises:
            TypeError, ValueError: field or value has the wrong type or is out of range.
        """
        value = self._check("value", value, self.value_type)
        self._open().put(self._check("field", field, self.field_type), value)
        self._counts = None

    def put_many(self, fields: Mapping[Any, Any] | Iterable[Any], values: Iterable[Any] | None = None) -> None:
        """Sets many fields; like calling `put` for each in order, but many times faster.

        Args:
            fields: the fields; of one that is named twice the last value counts. Or a mapping of fields to values.
            values: one for each field.

        Raises:
            TypeError, ValueError: as `put`; some fields may already be set. Or these are not two columns of one length.
        """
        keys, column = self._columns("put_many", fields, values)
        if not self._put_plain(keys, column):
            for field, value in zip(keys, column, strict=True):
                self.put(field, value)
        self._counts = None

    def delete(self, field: Any) -> None:
        """Removes a field if it exists."""
        self._open().delete(self._check("field", field, self.field_type))
        self._counts = None

    def get(self, field: Any) -> Any:
        """Returns the field's value, or None.

        Raises:
            StaleReadError: this attempt was overtaken and is replayed.
            StateRefusedError: the stored value does not have the declared type.
        """
        (value,) = self.get_many([field]).values()
        return value

    def get_many(self, fields: Iterable[Any]) -> dict[Any, Any]:
        """Returns field -> value or None, in one round trip.

        Raises:
            StaleReadError, StateRefusedError: as `get`.
        """
        wanted = list(dict.fromkeys(self._check("field", field, self.field_type) for field in fields))
        found = self._read(wanted) if wanted else {}
        return {field: None if value is MISSING else value for field, value in found.items()}


class ValueState(StateHandle):
    """A Redis string: one value.

    Args:
        name: state name.
        value: type of the value, ``int``, ``float``, ``str`` or ``bytes``, or its name.
    """

    kind = StateKind.VALUE
    field_type = ValueType.STR

    def __init__(self, name: str, value: type | str = int) -> None:
        super().__init__(name)
        self.value_type = declared_type(f"value of state {name!r}", value)

    def put(self, value: Any) -> None:
        """Sets the value."""
        self._open().put(VALUE_FIELD, self._check("value", value, self.value_type))

    def increment(self, by: Any = 1) -> None:
        """Adds `by` to the value, starting from 0 if there is none."""
        self._add(VALUE_FIELD, self._check_delta(by))

    def delete(self) -> None:
        """Removes the value."""
        self._open().delete(VALUE_FIELD)

    def get(self) -> Any:
        """Returns the value, or None.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        value = self._read([VALUE_FIELD])[VALUE_FIELD]
        return None if value is MISSING else value


class SetState(StateHandle):
    """A Redis set of members.

    Args:
        name: state name.
        value: type of the members, ``str``, ``int`` or ``bytes``, or its name.
    """

    kind = StateKind.SET

    def __init__(self, name: str, value: type | str = str) -> None:
        super().__init__(name)
        self.value_type = self.field_type = declared_type(f"member of state {name!r}", value, _TEXT)

    def add(self, member: Any) -> None:
        """Adds `member` to the set."""
        self._open().put(self._check("member", member, self.field_type), True)

    def add_many(self, members: Iterable[Any]) -> None:
        """Adds many members; like calling `add` for each, but many times faster.

        Raises:
            TypeError, ValueError: as `add`; some members may already be added. Or this is text, not members.
        """
        column = list(members) if isinstance(members, (Set, Mapping)) else self._column("add_many", members)
        if not self._put_plain(column, [True] * len(column)):
            for member in column:
                self.add(member)

    def remove(self, member: Any) -> None:
        """Removes `member` if it is in the set."""
        self._open().delete(self._check("member", member, self.field_type))

    def contains(self, member: Any) -> bool:
        """Whether `member` is in the set.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        (is_member,) = self.contains_many([member]).values()
        return is_member

    def contains_many(self, members: Iterable[Any]) -> dict[Any, bool]:
        """Returns member -> whether it is in the set, in one round trip."""
        wanted = list(dict.fromkeys(self._check("member", member, self.field_type) for member in members))
        found = self._read(wanted) if wanted else {}
        return {member: value is not MISSING for member, value in found.items()}


class SortedSetState(StateHandle):
    """A Redis sorted set: member -> score, a finite float.

    Args:
        name: state name.
        value: type of the members, ``str``, ``int`` or ``bytes``, or its name.
    """

    kind = StateKind.SORTED_SET
    value_type = ValueType.FLOAT

    def __init__(self, name: str, value: type | str = str) -> None:
        super().__init__(name)
        self.field_type = declared_type(f"member of state {name!r}", value, _TEXT)

    def put(self, member: Any, score: Any) -> None:
        """Sets a member's score."""
        score = self._check("score", as_float(score), ValueType.FLOAT)
        self._open().put(self._check("member", member, self.field_type), score)

    def put_many(self, members: Mapping[Any, Any] | Iterable[Any], scores: Iterable[Any] | None = None) -> None:
        """Sets the scores of many members; like calling `put` for each in order, but many times faster.

        Args:
            members: the members; of one that is named twice the last score counts. Or a mapping of members to scores.
            scores: one for each member.

        Raises:
            TypeError, ValueError: as `put`; some scores may already be set. Or these are not two columns of one length.
        """
        keys, column = self._columns("put_many", members, scores)
        if not self._put_plain(keys, column):
            for member, score in zip(keys, column, strict=True):
                self.put(member, score)

    def increment_many(self, members: Mapping[Any, Any] | Iterable[Any], amounts: Iterable[Any] | None = None) -> None:
        """Adds to the scores of many members; like calling `increment` for each in order.

        Raises:
            TypeError, ValueError: as `increment`; some scores may already be incremented. Or these are not two columns
                of one length.
        """
        for member, by in zip(*self._columns("increment_many", members, amounts), strict=True):
            self.increment(member, by)

    def increment(self, member: Any, by: Any = 1.0) -> None:
        """Adds `by` to a member's score, starting from 0 if it is missing."""
        by = self._check_delta(by)
        self._add(self._check("member", member, self.field_type), by)

    def remove(self, member: Any) -> None:
        """Removes `member` if it exists."""
        self._open().delete(self._check("member", member, self.field_type))

    def score(self, member: Any) -> float | None:
        """Returns the member's score, or None.

        Raises:
            StaleReadError, StateRefusedError: as `HashState.get`.
        """
        (value,) = self._read([self._check("member", member, self.field_type)]).values()
        return None if value is MISSING else float(value)


class ListState(StateHandle):
    """A Redis list that grows at its end. Write-only: a transaction never reads a list.

    Args:
        name: state name.
        value: type of the items, ``int``, ``float``, ``str`` or ``bytes``, or its name.
    """

    kind = StateKind.LIST
    field_type = ValueType.STR

    def __init__(self, name: str, value: type | str = str) -> None:
        super().__init__(name)
        self.value_type = declared_type(f"item of state {name!r}", value)

    def append(self, value: Any) -> None:
        """Appends one item."""
        self._open().appends.append(self._check("item", value, self.value_type))

    def extend(self, values: Iterable[Any]) -> None:
        """Appends items in order."""
        items = list(values)
        if not self._are_plain(items, self.value_type):
            items = [self._check("item", value, self.value_type) for value in items]
        self._open().appends.extend(items)

    def delete(self) -> None:
        """Empties the list; items appended afterwards stay."""
        self._open().delete(VALUE_FIELD)


_declared: WeakKeyDictionary[type, Mapping[str, StateHandle]] = WeakKeyDictionary()


def declared_states(committer_class: type) -> Mapping[str, StateHandle]:
    """Returns attribute name -> handle for every state a committer class declares, bases included.

    Called for each committer in every attempt, so the answer is kept: a class declares its states when it is defined.

    Raises:
        TopologyError: two attributes declare the same state name.
    """
    known = _declared.get(committer_class)
    if known is None:
        known = _declared[committer_class] = MappingProxyType(_found_states(committer_class))
    return known


def _found_states(committer_class: type) -> dict[str, StateHandle]:
    found: dict[str, StateHandle] = {}
    for base in reversed(committer_class.__mro__):
        for attribute, value in vars(base).items():
            found.pop(attribute, None)
            if isinstance(value, StateHandle):
                found[attribute] = value
    names: dict[str, str] = {}
    for attribute, handle in found.items():
        other = names.setdefault(handle.name, attribute)
        if other != attribute:
            raise TopologyError(
                f"state {handle.name!r} is declared twice in {committer_class.__name__}, "
                f"as {other!r} and {attribute!r}; keep one"
            )
    return found


def bind_states(committer: object, session: StateSession) -> None:
    """Puts a live handle for every declared state into a committer instance; the executor calls it once per instance.

    Raises:
        TopologyError: the class forbids instance attributes with ``__slots__``.
    """
    for attribute, handle in declared_states(type(committer)).items():
        if not hasattr(committer, "__dict__"):
            raise TopologyError(f"committer {type(committer).__name__} has __slots__; remove them to use state")
        committer.__dict__[attribute] = handle.bind(session)
