"""How rows are aggregated by key: within a batch first, where they are, and then into a state, in the commit phase.

Each aggregation is one class with both halves. A group is the part of the state that a row belongs to, if the state has
parts, and the key; where neither is wanted there is one group, None.
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
        said: how the user has asked for it; messages show it.
        part: the field that tells the part of the state; None if it has no parts.
        key: the fields that tell the key, a tuple if there are several; none if all rows belong together.
        takes: the fields of the values that it aggregates.
        kinds: the kinds of state that it can be kept in.
        value_types: and what these may hold.
        combines: whether a batch is combined before it is grouped; if not, every row travels.
        compares: whether it compares the values of its first field, so that rows without one become dead letters.
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
        """The fields that tell what belongs together: the part, then the key, as far as there are any."""
        return self.key if self.part is None else (self.part, *self.key)

    @property
    def sent(self) -> tuple[str, ...]:
        """The fields that travel to the state, those of the group and then those of the values.

        No name repeats if rows are combined first; if not, they travel as they are.
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
        """Returns the first value of a field that it cannot take, even if others are better, and why."""
        return None

    def fitted(self, into: DeclaredState) -> DeclaredState:
        """Returns the state to keep it in (driver).

        Raises:
            TopologyError: it does not fit.
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
        """Returns the state for these keys: the one type of fields that it declares holds for each value of a tuple."""
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
        """Returns a state that reads for a whole group of transactions at once, if its keys are in tuple fields."""
        if not isinstance(state, KeyedState) or not self.key or state.prefetched_by:
            return state
        return copy.copy(state).prefetch(*self.key)

    def wrong(self, text: str) -> TopologyError:
        """Returns the error about how it was asked for."""
        return TopologyError(f"{self.said}: {text}")

    def start(self) -> Any:
        """Returns what a batch is combined into."""
        return {}

    def add(self, combined: Any, group: ColumnLists, values: ColumnLists) -> None:
        """Adds rows: the columns of their group, and those of their values (processing phase)."""
        for key, value in zip(self._groups(group), self._values(values), strict=False):
            combined[key] = self.merged(combined[key], value) if key in combined else value

    def columns(self, combined: Any) -> list[Any]:
        """Returns what has been combined, as columns: the group, and then the values."""
        return [*self._ungrouped(combined.keys()), combined.values()]

    def merged(self, one: Any, other: Any) -> Any:
        """Returns what two values of a group become."""
        raise NotImplementedError

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        """Changes a state, or one part of it, by rows that came together (commit phase)."""
        new: dict[Any, Any] = {}
        self.add(new, [keys], values)
        stored = _stored(state, new)
        changed = {key: value if stored[key] is None else self.merged(stored[key], value) for key, value in new.items()}
        _store(state, {key: value for key, value in changed.items() if self.differs(value, stored[key])})

    def differs(self, one: Any, other: Any) -> bool:
        """Returns whether a value has to take the place of the stored one, if there is one."""
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
        """Returns the group of each row; without end if there is only one."""
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
    """How many rows there are; it takes any one field, which tells how many there are in no group."""

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
        """Makes 0.0 of -0.0, which is equal, so that the order of the rows does not decide which one stays."""
        return [each + 0.0 if type(each) is float else each for each in values[0]] if 0.0 in values[0] else values[0]

    def first_wrong(self, state: StateHandle[Any], name: str, values: list[Any]) -> Wrong | None:
        return state.first_wrong_value(values)


@dataclass(frozen=True)
class Collecting(Aggregation):
    """Which values there are; the key is the value."""

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
    """What a function makes of the values one after the other, beginning with an initial one."""

    function: UserFunction
    initial: Any

    combines = False

    def write(self, state: Any, keys: list[Any], values: ColumnLists) -> None:
        reduced = _stored(state, keys)
        for key, *row in zip(keys, *values, strict=True):
            before = reduced[key]
            reduced[key] = self.function.call(copy.deepcopy(self.initial) if before is None else before, *row)
        if wrong := state.first_wrong_value([*reduced.values()]):
            key = [*reduced][wrong.place]
            raise WrongAnswerError(f"{self.function} returned {cut(reduced[key])} for {cut(key)}: {wrong.error}")
        _store(state, reduced)


@dataclass(frozen=True)
class Appending(Aggregation):
    """The rows themselves, one after the other: entries of a stream, or items of a list.

    Attributes:
        is_value: whether an item is the value of the one field; if not, it is an object of all of them.
    """

    is_value: bool

    combines = False
    kinds = (StateKind.LIST, StateKind.STREAM)
    reads = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        if into.kind is StateKind.LIST and into.value_type is not ValueType.JSON and not self.is_value:
            raise self.wrong(
                f"{into!r} has items of {into.value_type}; name the one field that they are in of='…', or declare "
                "'json' items, which are objects of several fields"
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
    """Nothing but keys, which rows look up in a state."""

    combines = False

    def fitted(self, into: DeclaredState) -> DeclaredState:
        return self._read_ahead(self._of_keys(into))


def replaced(family: StateFamily[Any], template: StateHandle[Any]) -> StateFamily[Any]:
    """Returns a state with the same parts, each like another template."""
    return template.per(family.part_name, family.part_type.value, expire_at=family.expire_at)


def _stored(state: Any, keys: Iterable[Any]) -> dict[Any, Any]:
    return {None: state.get()} if isinstance(state, ValueState) else state.get_many(keys)


def _store(state: Any, values: dict[Any, Any]) -> None:
    if not isinstance(state, ValueState):
        state.put_many(values)
    elif values:
        state.put(values[None])
