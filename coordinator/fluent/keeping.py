"""The methods of a stream that keep an aggregation of its rows, and return the same stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeAlias

from coordinator.fluent.aggregations import Aggregation, Appending, Counting, Extreme, Reducing, Summing
from coordinator.fluent.ordered_aggregations import Latest, Ranking
from coordinator.fluent.stream_steps import Fields, StreamSteps
from state.kinds.handles import DeclaredState
from state.kinds.hash_state import HashState
from state.kinds.member_states import SortedSetState
from state.kinds.state_family import StateFamily
from state.kinds.state_handle import Number
from state.kinds.value_states import ValueState

Summed: TypeAlias = (
    HashState[Number]
    | ValueState[Number]
    | SortedSetState[Any]
    | StateFamily[HashState[Number]]
    | StateFamily[SortedSetState[Any]]
)
"""A state of numbers."""


class Keeping:
    """Aggregations of rows into states; the base of `Stream`."""

    _steps: StreamSteps

    def count_by(self, key: Fields | None, *, into: Summed[Number]) -> Self:
        """Counts the rows for each value of a field.

        Args:
            key: the field, or a list of several: then keys are tuples, such as ``ann|2026-11-21`` in Redis. The field
                type that the state declares, by default ``str``, holds for each of them; give ``field=(str, date)`` if
                the types differ. None counts all rows together, in a `ValueState`.
            into: a `HashState` or `SortedSetState`. With ``per``, the field of that name chooses the part:
                ``SortedSetState("views").per("day")`` takes the part from the field ``day``.
        """
        return self._keep(Counting, key, into, takes=self._steps.fields[:1])

    def sum_by(self, key: Fields | None, value: str, *, into: Summed[Number]) -> Self:
        """Adds up a field for each value of another; for `key` and `into` see `count_by`."""
        return self._keep(Summing, key, into, takes=[value])

    def min_by(self, key: Fields | None, value: str, *, into: DeclaredState) -> Self:
        """Keeps the least value of a field for each value of another, in a `HashState`; for `key` see `count_by`."""
        return self._keep(Extreme, key, into, takes=[value], least=True)

    def max_by(self, key: Fields | None, value: str, *, into: DeclaredState) -> Self:
        """Keeps the greatest value of a field for each value of another; see `min_by`."""
        return self._keep(Extreme, key, into, takes=[value], least=False)

    def latest_by(self, key: Fields | None, order: str, *, into: DeclaredState, of: Fields | None = None) -> Self:
        """Keeps, for each value of a field, the row with the greatest value of another field, as a JSON object.

        Args:
            key: see `count_by`.
            order: the field to compare, such as a time; a row that is older than the stored one changes nothing.
            into: ``HashState(…, "json")``; an object has the field `order` and the fields in `of`.
            of: the fields to keep; by default all except the key and the part.
        """
        part, keys = self._steps.group(key, into)
        others = self._steps.given(of) if of is not None else [f for f in self._steps.fields if f not in (part, *keys)]
        return self._keep(Latest, key, into, takes=dict.fromkeys([order, *others]))

    def reduce_by(
        self,
        key: Fields | None,
        function: Callable[..., Any],
        initial: Any,
        *,
        into: DeclaredState,
        of: Fields | None = None,
    ) -> Self:
        """Keeps, for each value of a field, the result of a function that takes one row after another.

        Every row travels to the task of its key, because results of the function may not be combinable. The rows of a
        transaction arrive in the order of the input if the source and all steps have one task.

        Args:
            key: see `count_by`.
            function: called in the commit phase with the stored value and the values of the fields in `of`; returns the
                new value.
            initial: the value of a key that is not stored yet; plain data; each key gets a copy.
            into: a `HashState`, or a `ValueState` for key None, of any type of values.
            of: the fields that the function gets after the stored value; by default all, or the row's object, see
                `Stream`.
        """
        called, takes = self._steps.function(function, of), self._steps.given(of, to_function=True)
        return self._keep(Reducing, key, into, takes=takes, function=called, initial=initial)

    def top(self, most: int, member: Fields, *, by: str, into: DeclaredState) -> Self:
        """Keeps the members with the highest scores of all transactions, in a `SortedSetState` of limited size.

        A member counts with its best score. To rank by sums, use `sum_by` into a `SortedSetState` without a limit.

        Args:
            most: how many members are kept.
            member: the field of the members, or a list of several, see `count_by`.
            by: the field of the scores.
            into: a `SortedSetState`, which need not declare the limit.
        """
        return self._keep(Ranking, member, into, takes=[by], most=most)

    def append(self, *, into: DeclaredState, of: Fields | None = None) -> Self:
        """Appends each row to a stream or a list that other programs read, for example an alert.

        One task appends all rows. The rows of a transaction arrive in the order described in `reduce_by`, so a replay
        appends the same if every component has one task.

        Args:
            into: a `StreamState`, whose entries have the fields; or a `ListState`, whose items are the values of one
                field or, with type "json", objects of several fields. It may have parts, see `count_by`.
            of: the fields; by default all.
        """
        takes, is_value = self._steps.given(of), isinstance(of, str)
        return self._keep(Appending, None, into, takes=takes, is_value=is_value)

    def _keep(self, kind: Callable[..., Aggregation], key: Fields | None, into: DeclaredState, **more: Any) -> Self:
        self._steps.next(self._steps.kept(kind, key, into, **more), self._steps.fields, into.name)
        return self
