"""Stateless steps, such as `map` and `filter`, applied to rows that are held as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import attrgetter
from typing import Any, TypeAlias

from coordinated_bolt.streams.records import allowed_types
from coordinator.fluent.user_function import UserFunction
from state.values.column_values import is_unordered

ColumnLists: TypeAlias = list[list[Any]]
"""One list for each field, at least one list, all of the same length; a step never changes its argument."""


class RowStep(ABC):
    """A stateless step."""

    @abstractmethod
    def apply(self, columns: ColumnLists) -> ColumnLists:
        """Returns the rows that leave the step."""


@dataclass(frozen=True)
class ChosenFields(RowStep):
    """Keeps some fields of each row, perhaps under other names; `positions` has their positions, in order."""

    positions: tuple[int, ...]

    def apply(self, columns: ColumnLists) -> ColumnLists:
        return [columns[position] for position in self.positions]


@dataclass(frozen=True)
class FunctionStep(RowStep):
    """Calls a function.

    Attributes:
        function: the user's function.
        positions: positions of the fields that it is called with.
    """

    function: UserFunction
    positions: tuple[int, ...]

    def given(self, columns: ColumnLists) -> ColumnLists:
        """Returns the columns that the function is called with."""
        return [columns[position] for position in self.positions]


@dataclass(frozen=True)
class FilterStep(FunctionStep):
    """Keeps the rows for which the function returns true."""

    def apply(self, columns: ColumnLists) -> ColumnLists:
        verdicts = self.function.verdicts(self.given(columns))
        return columns if all(verdicts) else [list(compress(column, verdicts)) for column in columns]


@dataclass(frozen=True)
class MapStep(FunctionStep):
    """Puts the function's result into the row.

    Attributes:
        layout: the columns that leave the step, as positions in the list of its input columns and then the new ones.
        width: how many fields the function fills; None if its result is the value of a single field.
        record_class: the class of the function's results, if `to` was one.
    """

    layout: tuple[int, ...]
    width: int | None
    record_class: type[Any] | None = None

    def apply(self, columns: ColumnLists) -> ColumnLists:
        given = self.given(columns)
        return self._laid_out(columns, self._filled(self.function.each(given), lambda: given))

    def _laid_out(self, columns: ColumnLists, new: ColumnLists) -> ColumnLists:
        both = [*columns, *new]
        return [both[position] for position in self.layout]

    def _filled(self, answers: list[Any], given: Callable[[], ColumnLists]) -> ColumnLists:
        """Returns the new columns; `given` returns the function's arguments, if a message has to show them."""
        width = self.width
        if width is None:
            return [answers]
        if self.record_class is not None:
            return self._fields_of(self.record_class, answers, given)
        if not {list, tuple}.issuperset(map(type, answers)) or {*map(len, answers)} - {width}:
            for place, answer in enumerate(answers):
                if is_unordered(answer) or not isinstance(answer, Sequence) or len(answer) != width:
                    remedy = f"give {width} values, one for each field of `to`"
                    raise self.function.wrong(given(), place, answer, remedy)
        return list(map(list, zip(*answers, strict=True))) or [[] for _ in range(width)]

    def _fields_of(self, record_class: type[Any], answers: list[Any], given: Callable[[], ColumnLists]) -> ColumnLists:
        for place, answer in enumerate(answers):
            if not isinstance(answer, record_class):
                remedy = f"give a {record_class.__name__} for each row"
                raise self.function.wrong(given(), place, answer, remedy)
        filled = []
        for name, allowed in allowed_types(record_class).items():
            filled.append(values := list(map(attrgetter(name), answers)))
            if allowed and not allowed.issuperset(map(type, values)):
                place = next(place for place, value in enumerate(values) if type(value) not in allowed)
                remedy = f"{name!r} has another type than {record_class.__name__} declares; change one of them"
                raise self.function.wrong(given(), place, answers[place], remedy)
        return filled


@dataclass(frozen=True)
class FlatMapStep(MapStep):
    """Makes a row of each item that the function returns or yields."""

    def apply(self, columns: ColumnLists) -> ColumnLists:
        given = self.given(columns)
        if self.function.function is str.split and self.width is None and len(self.layout) == 1:
            with suppress(TypeError):  # explained below
                return [" ".join(given[0]).split()]  # the words of all rows in one call, in two thirds of the time
        lists = self.function.lists(given)

        def repeated(column: list[Any]) -> list[Any]:
            return list(chain.from_iterable(map(repeat, column, map(len, lists))))

        kept = [repeated(column) if place in self.layout else [] for place, column in enumerate(columns)]
        new = self._filled(list(chain.from_iterable(lists)), lambda: list(map(repeated, given)))
        return self._laid_out(kept, new)


def layout_of(
    fields: Sequence[str], given: Sequence[str], new: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns the fields after new ones have replaced some, and the `MapStep.layout` that makes them."""
    kept = [name for name in fields if name not in given]
    before = sum(name in kept for name in fields[: fields.index(given[0])])
    named = [(name, fields.index(name)) for name in kept]
    named[before:before] = [(name, len(fields) + place) for place, name in enumerate(new)]
    return tuple(name for name, _ in named), tuple(place for _, place in named)
