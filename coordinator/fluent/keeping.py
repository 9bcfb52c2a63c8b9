"""The half of a stream whose calls keep something of its rows, and return the stream they are called on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from coordinator.fluent.aggregations import Aggregation, Appending, Counting, Extreme, Reducing, Summing
from coordinator.fluent.ordered_aggregations import Latest, Ranking
from coordinator.fluent.said_so_far import Fields, SaidSoFar
from state.kinds.handles import DeclaredState


class Keeping:
    """Aggregations of rows into states; the base of `Stream`."""

    _said: SaidSoFar

    def count_by(self, key: Fields | None, *, into: DeclaredState) -> Self:
        """Counts the rows for each value of a field.

        Args:
            key: the field, or a list of several: keys are tuples then, and Redis has ``ann|2026-11-21``. The type that
                the state declares for its fields, ``str`` unless it says otherwise, holds for each of them; give
                ``field=(str, date)`` if they differ. None for all rows together, in a `ValueState`.
            into: a `HashState` or `SortedSetState`, or one with ``per``: its parts are then chosen by the field of
                that name, so ``SortedSetState("views").per("day")`` takes the part from the field ``day``.
        """
        return self._keep(Counting, key, into, takes=self._said.fields[:1])

    def sum_by(self, key: Fields | None, value: str, *, into: DeclaredState) -> Self:
        """Adds up a field for each value of another; `key` and `into` are as of `count_by`."""
        return self._keep(Summing, key, into, takes=[value])

    def min_by(self, key: Fields | None, value: str, *, into: DeclaredState) -> Self:
        """Keeps the least value of a field for each value of another, in a `HashState`; `key` is as of `count_by`."""
        return self._keep(Extreme, key, into, takes=[value], least=True)

    def max_by(self, key: Fields | None, value: str, *, into: DeclaredState) -> Self:
        """Keeps the greatest value of a field for each value of another, as `min_by`."""
        return self._keep(Extreme, key, into, takes=[value], least=False)

    def latest_by(self, key: Fields | None, order: str, *, into: DeclaredState, of: Fields | None = None) -> Self:
        """Keeps, for each value of a field, the row that is greatest in another, as a JSON object.

        Args:
            key: as of `count_by`.
            order: the field to compare, such as a time; a row that is older than the stored one changes nothing.
            into: ``HashState(…, "json")``; an object has the field `order` and those of `of`.
            of: the fields to keep; without it, all but the key and the part.
        """
        part, keys = self._said.group(key, into)
        others = self._said.given(of) if of is not None else [f for f in self._said.fields if f not in (part, *keys)]
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
        """Keeps what a function makes of one row after the other, for each value of a field.

        Every row travels to the task of its key, for nobody knows whether two results of the function can be combined.
        Rows of a transaction come in the order of the input if the source and what follows it have one task.

        Args:
            key: as of `count_by`.
            function: called in the commit phase with the stored value, and the values of the fields in `of`; returns
                the new one.
            initial: takes the place of a value that is not stored; plain data; each key gets a copy.
            into: a `HashState`, or a `ValueState` for key None, of any type of values.
            of: the fields that the function is given after the stored value; without it, all.
        """
        called, takes = self._said.function(function), self._said.given(of)
        return self._keep(Reducing, key, into, takes=takes, function=called, initial=initial)

    def top(self, most: int, member: Fields, *, by: str, into: DeclaredState) -> Self:
        """Keeps the highest scores of all transactions, in a `SortedSetState` that is cut to that many members.

        A member counts with its best score. To rank by sums, use `sum_by` into a `SortedSetState` without a limit.

        Args:
            most: how many members stay.
            member: the field of the members, or a list of several, as of `count_by`.
            by: the field of the scores.
            into: a `SortedSetState`, in which the limit need not be declared.
        """
        return self._keep(Ranking, member, into, takes=[by], most=most)

    def append(self, *, into: DeclaredState, of: Fields | None = None) -> Self:
        """Appends each row to a stream or a list that other programs read, an alert for example.

        One task appends all rows; those of a transaction come as of `reduce_by`, so with one task everywhere a replay
        appends the same.

        Args:
            into: a `StreamState`, whose entries have the fields; or a `ListState`, whose items are the values of one
                field, or of declared type "json" and objects of several. It may have parts, as of `count_by`.
            of: the fields; without it, all.
        """
        takes, is_value = self._said.given(of), isinstance(of, str)
        return self._keep(Appending, None, into, takes=takes, is_value=is_value)

    def _keep(self, kind: Callable[..., Aggregation], key: Fields | None, into: DeclaredState, **more: Any) -> Self:
        self._said.next(self._said.kept(kind, key, into, **more), self._said.fields, into.name)
        return self
