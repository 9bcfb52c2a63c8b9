"""How rows are aggregated by key: first within a batch, on the task that has them, then into a state, when committing.

Each aggregation is one class with both halves. The group of a row is its key, after the part of the state if the state
has parts; without either, all rows are in one group, None.
"""

from __future__ import annotations

import copy
from abc import ABC
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Inexact, InvalidOperation, Overflow, localcontext
from itertools import repeat
from typing import Any, ClassVar

from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_traceback import WrongAnswerError
from coordinator.fluent.row_steps import ColumnLists
from coordinator.fluent.user_function import UserFunction
from state.errors import TopologyError
from state.kinds.handles import DeclaredState
from state.kinds.keyed_state import KeyedState
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import StateHandle
from state.kinds.stream_state import StreamState
from state.kinds.value_states import ValueState
from state.values.first_wrong import Wrong, first_wrong
from state.values.state_kind import StateKind, TupleType, ValueType
from state.values.value_form import canonical_json

EXACT = Context(prec=5_000, traps=[Inexact, InvalidOperation, Overflow])
"""Adds Decimals without rounding them; Python's own context keeps 28 digits."""
_KEYLESS = (StateKind.VALUE, StateKind.LIST, StateKind.STREAM)
_NUMBERS = (ValueType.INT, ValueType.FLOAT, ValueType.DECIMAL)


@dataclass(frozen=True)
class Aggregation(ABC):
    """One way to aggregate; shipped with the bolts of both halves.

    Attributes:
        said: the user's call, with file and line, for messages; see `current_user_call`.
        part: the field with the part of the state; None if the state has no parts.
        key: the fields of the key, which is a tuple if there are several; empty if all rows belong together.
        takes: the fields whose values are aggregated.
        kinds: the kinds of state that can keep it.
        value_types: the types of values that these states may hold.
        combines: whether a batch is combined before it is grouped; if not, every row travels.
        compares: whether it compares the values of its first field, so that rows with None there become dead letters.
        reads: whether it reads the state.
    """

    said: str
    part: str | None
    key: tuple[str, ...]
    takes: tuple[str, ...]

    kinds: ClassVar[tuple[StateKind, ...]] = (StateKind.HASH, StateKind.VALUE)
    value_types: ClassVar[tuple[ValueType, ...]] = tuple(ValueType)
    combines: ClassVar[bool] = True
    compares: ClassVar[bool] = False
    reads: ClassVar[bool] = True

    @property
    def group(self) -> tuple[str, ...]:
        """The fields of a row's group: first the part, if there is one, then the key."""
        return self.key if self.part is None else (self.part, *self.key)

    @property
    def sent(self) -> tuple[str, ...]:
        """The fields that travel to the state: first the group, then the values.

        Names are made unique if rows are combined first; otherwise rows travel as they are.
        """
        if not self.combines:
            return (*self.group, *self.takes)
        names: list[str] = []
        for wanted in (*self.group, *self._gives):
            name = wanted
            while name in names:
                name += "_"
            names.append(name)
        return tuple(names)

    @property
    def _gives(self) -> tuple[str, ...]:
        return self.takes

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        """Returns the first value of a field that it cannot aggregate, and why; None if there is none."""
        return None

    def fitted(self, into: DeclaredState) -> DeclaredState:
        """Returns the state to use, perhaps adapted to this aggregation (driver).

        Raises:
            TopologyError: the state does not fit.
        """
        if into.kind not in self.kinds or into.value_type not in self.value_types:
            kinds, types = (", ".join(each) for each in (self.kinds, self.value_types))
            raise self.wrong(f"{into!r} is a {into.kind} of {into.value_type} values; give a {kinds} of {types} values")
        if into.fields_expire:
            raise self.wrong(
                f"fields of {into!r} expire at times that only a class can give, in put(..., expire_at=...); commit "
                "one, or give a state whose fields stay, or whose parts expire, as in .per(...)"
            )
        if (into.kind in _KEYLESS) is bool(self.key):
            shown = ", ".join(map(repr, self.key)) or None
            raise self.wrong(f"key {shown} does not fit {into!r}; only a ValueState has, and needs, the key None")
        keyed = self._of_keys(into)
        return self._read_ahead(keyed) if self.reads else keyed

    def _of_keys(self, into: DeclaredState) -> DeclaredState:
        """Returns the state for these keys: its declared field type becomes the type of each value of a tuple key."""
        handle, width = into.template if isinstance(into, StateFamily) else into, len(self.key)
        if isinstance(declared := handle.field_type, TupleType):
            if len(declared.types) != width:
                raise self.wrong(
                    f"{into!r} has tuples of {declared.value} for keys; name {len(declared.types)} fields as the key"
                )
        elif width > 1:
            handle = handle.of_tuples(width)
            return replaced(into, handle) if isinstance(into, StateFamily) else handle
        return into

    def _read_ahead(self, state: DeclaredState) -> DeclaredState:
        """Returns a state that prefetches keys for a whole group of transactions, if the keys are fields of tuples."""
        if not isinstance(state, KeyedState) or not self.key or state.prefetched_by:
            return state
        return copy.copy(state).prefetch(*self.key)

    def wrong(self, text: str) -> TopologyError:
        """Returns an error that begins with the user's call."""
        return TopologyError(f"{self.said}: {text}")

    def start(self) -> Any:
        """Returns an empty accumulator for a batch."""
        return {}

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        """Adds rows to an accumulator, given as columns of their group and of their values (processing phase)."""
        for key, value in zip(self._groups(group), self._values(values), strict=False):
            combined[key] = self.merged(combined[key], value) if key in combined else value

    def columns(self, combined: Any) -> list[Any]:
        """Returns the content of an accumulator as columns: first the group, then the values."""
        return [*self._ungrouped(combined.keys()), combined.values()]

    def merged(self, one: Any, other: Any) -> Any:
        """Returns the combination of two values of a group."""
        raise NotImplementedError

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        """Writes the rows of a transaction into a state, or one part of it (commit phase)."""
        new: dict[Any, Any] = {}
        self.add(new, [keys], values)
        stored = _stored(state, new)
        changed = {key: value if stored[key] is None else self.merged(stored[key], value) for key, value in new.items()}
        _store(state, {key: value for key, value in changed.items() if self.differs(value, stored[key])})

    def differs(self, one: Any, other: Any) -> bool:
        """Returns whether a value has to replace the stored one; the stored one may be None."""
        return bool(one != other)

    def _values(self, values: ColumnLists) -> Iterable[Any]:
        return values[0]

    def divided(self, columns: ColumnLists) -> tuple[list[Any] | None, list[Any], ColumnLists]:
        """Returns the parts of rows, if the state has parts, their keys, and all other columns."""
        parts, rest = (None, columns) if self.part is None else (columns[0], columns[1:])
        width = len(self.key)
        keys = rest[0] if width == 1 else list(zip(*rest[:width], strict=True)) if width else [None] * len(columns[0])
        return parts, keys, rest[width:]

    def _groups(self, group: ColumnLists) -> Iterable[Any]:
        """Returns the group of each row; an endless iterator if there is only one group."""
        if not group:
            return repeat(None)
        return group[0] if len(group) == 1 else zip(*group, strict=True)

    def _ungrouped(self, groups: Iterable[Any]) -> list[Any]:
        """Inverse of `_groups`, for at least one group."""
        if len(self.group) < 2:
            return [groups] * len(self.group)
        return list(zip(*groups, strict=True))


@dataclass(frozen=True)
class Summing(Aggregation):
    """The sum of a field."""

    kinds = (StateKind.HASH, StateKind.VALUE, StateKind.SORTED_SET)
    value_types: ClassVar[tuple[ValueType, ...]] = _NUMBERS
    reads = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        handle = into.template if isinstance(into, StateFamily) else into
        if handle.retention.is_ranked:
            raise self.wrong(
                f"{into!r} keeps only its best members, so sums of other members may be gone; leave the limit out: "
                "sums are ranked without it"
            )
        return super().fitted(into)

    def start(self) -> Any:
        return defaultdict(int)

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        try:
            with localcontext(EXACT):
                for key, value in zip(self._groups(group), values[0], strict=False):
                    combined[key] += value
        except TypeError as error:
            raise TypeError(
                f"{cut(value)} cannot be added to {cut(combined[key])}; give numbers of one type"
            ) from error

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        return state.first_wrong_increment(values)

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        if isinstance(state, ValueState):
            with localcontext(EXACT):
                state.increment(sum(values[0]))
        else:
            state.increment_many(keys, values[0])


@dataclass(frozen=True)
class Counting(Summing):
    """The number of rows. It takes any one field, whose length is the count if there are no groups."""

    value_types = (ValueType.INT, ValueType.FLOAT)

    @property
    def _gives(self) -> tuple[str, ...]:
        return ("count",)

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        return None

    def start(self) -> Any:
        return Counter()

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        combined.update(self._groups(group) if group else {None: len(values[0])})


@dataclass(frozen=True)
class Extreme(Aggregation):
    """The least or the greatest value of a field."""

    least: bool

    compares = True
    value_types = (*_NUMBERS, ValueType.STR, ValueType.BYTES, ValueType.DATE)

    def merged(self, one: Any, other: Any) -> Any:
        return min(one, other) if self.least else max(one, other)

    def _values(self, values: ColumnLists) -> Iterable[Any]:
        """Replaces -0.0 by 0.0, which is equal, so that the order of the rows does not decide which one is kept."""
        return [each + 0.0 if type(each) is float else each for each in values[0]] if 0.0 in values[0] else values[0]

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        return state.first_wrong_value(values)


@dataclass(frozen=True)
class Collecting(Aggregation):
    """The distinct values; the key is the value."""

    kinds = (StateKind.SET, StateKind.HYPERLOGLOG)
    reads = False

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        combined.update(dict.fromkeys(self._groups(group)))

    @property
    def _gives(self) -> tuple[str, ...]:
        return ()

    def columns(self, combined: Any) -> list[Any]:
        return self._ungrouped(combined.keys())

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        state.add_many(keys)


@dataclass(frozen=True)
class Reducing(Aggregation):
    """The result of a function that takes the values one after another, beginning with an initial one."""

    function: UserFunction
    initial: Any

    combines = False

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        reduced = _stored(state, keys)
        for key, *row in zip(keys, *self.function.arguments(values), strict=True):
            before = reduced[key]
            reduced[key] = self.function.call(copy.deepcopy(self.initial) if before is None else before, *row)
        if wrong := state.first_wrong_value([*reduced.values()]):
            key = [*reduced][wrong.place]
            raise WrongAnswerError(f"{self.function} returned {cut(reduced[key])} for {cut(key)}: {wrong.error}")
        _store(state, reduced)


@dataclass(frozen=True)
class Appending(Aggregation):
    """The rows themselves, one after another: entries of a stream, or items of a list.

    Attributes:
        is_value: whether an item is the value of the only field; if not, it is an object of all fields.
    """

    is_value: bool

    combines = False
    kinds = (StateKind.LIST, StateKind.STREAM)
    reads = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        if into.kind is StateKind.LIST and into.value_type is not ValueType.JSON and not self.is_value:
            raise self.wrong(
                f"{into!r} has items of type {into.value_type}; name the one field to append by of='…', or declare "
                "items of type 'json', which hold several fields"
            )
        return super().fitted(into)

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        is_object = state.kind is StateKind.LIST and not self.is_value
        return first_wrong(values, canonical_json) if is_object else state.first_wrong_value(values)

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        rows = (dict(zip(self.takes, row, strict=True)) for row in zip(*values, strict=True))
        if isinstance(state, StreamState):
            for row in rows:
                state.append(row)
        else:
            state.extend(values[0] if self.is_value else rows)


@dataclass(frozen=True)
class KeysOnly(Aggregation):
    """Only keys, which rows look up in a state."""

    combines = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        return self._read_ahead(self._of_keys(into))


def replaced(family: StateFamily[Any], template: StateHandle[Any]) -> StateFamily[Any]:
    """Returns a state with the same parts, but another template for them."""
    return template.per(family.part_name, family.part_type.value, expire_at=family.expire_at)


def _stored(state: Any, keys: Iterable[Any]) -> dict[Any, Any]:
    return {None: state.get()} if isinstance(state, ValueState) else state.get_many(keys)


def _store(state: Any, values: dict[Any, Any]) -> None:
    if not isinstance(state, ValueState):
        state.put_many(values)
    elif values:
        state.put(values[None])
