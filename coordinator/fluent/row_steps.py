"""What stateless steps, such as `map` and `filter`, make of rows, held as columns; nothing here keeps anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, compress, repeat
from typing import Any, TypeAlias

from coordinator.fluent.user_function import UserFunction
from state.values.column_values import is_unordered

ColumnLists: TypeAlias = list[list[Any]]
"""One list for each field, at least one, all of one length; a step never changes those it is given."""


class RowStep(ABC):
    """A stateless step."""

    @abstractmethod
    def apply(self, columns: ColumnLists) -> ColumnLists:
        """Returns the rows that leave the step."""


@dataclass(frozen=True)
class ChosenFields(RowStep):
    """Leaves some fields of each row, under whatever names; `positions` says which, in order."""

    positions: tuple[int, ...]

    def apply(self, columns: ColumnLists) -> ColumnLists:
        return [columns[position] for position in self.positions]


@dataclass(frozen=True)
class FunctionStep(RowStep):
    """Calls a function.

    Attributes:
        function: the user's.
        positions: of the fields that it is called with.
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
    """Puts what the function returns into the row.

    Attributes:
        layout: which columns leave the step: positions in those that entered, followed by the new ones.
        width: how many fields the function fills; None if what it returns is the value of a single one.
    """

    layout: tuple[int, ...]
    width: int | None

    def apply(self, columns: ColumnLists) -> ColumnLists:
        given = self.given(columns)
        return self._laid_out(columns, self._filled(self.function.each(given), lambda: given))

    def _laid_out(self, columns: ColumnLists, new: ColumnLists) -> ColumnLists:
        both = [*columns, *new]
        return [both[position] for position in self.layout]

    def _filled(self, answers: list[Any], given: Callable[[], ColumnLists]) -> ColumnLists:
        """Returns the new columns; `given` gives what each answer is for, if a message has to name it."""
        width = self.width
        if width is None:
            return [answers]
        if not {list, tuple}.issuperset(map(type, answers)) or {*map(len, answers)} - {width}:
            for place, answer in enumerate(answers):
                if is_unordered(answer) or not isinstance(answer, Sequence) or len(answer) != width:
                    remedy = f"give {width} values, one for each field of `to`"
                    raise self.function.wrong(given(), place, answer, remedy)
        return list(map(list, zip(*answers, strict=True))) or [[] for _ in range(width)]


@dataclass(frozen=True)
class FlatMapStep(MapStep):
    """Puts each of the things that the function gives into a row of its own."""

    def apply(self, columns: ColumnLists) -> ColumnLists:
        given = self.given(columns)
        if self.function.function is str.split and self.width is None and len(self.layout) == 1:
            with suppress(TypeError):  # which the other way explains
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
    """Returns the fields when new ones take the place of some, and the `MapStep.layout` that makes them."""
    kept = [name for name in fields if name not in given]
    before = sum(name in kept for name in fields[: fields.index(given[0])])
    named = [(name, fields.index(name)) for name in kept]
    named[before:before] = [(name, len(fields) + place) for place, name in enumerate(new)]
    return tuple(name for name, _ in named), tuple(place for _, place in named)
