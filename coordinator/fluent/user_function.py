"""A user's function in a step of the short form, called so that errors name its step, line and arguments."""

from __future__ import annotations

import copy
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import length_hint
from typing import Any

from coordinated_bolt.streams.records import records_of
from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_code import is_ours
from coordinated_bolt.user_traceback import WrongAnswerError
from state.values.own_copy import ATOMS

_MANY = frozenset({list, tuple})
_NO_ROWS = (str, bytes, type(None))
_MUTABLE = (list, dict, set, tuple, bytearray, deque)
"""Types whose values can be changed, or may hold values that can be changed."""
_ALWAYS_TRUE = (Iterator, AsyncIterator, Awaitable, type(NotImplemented))
"""Types that are always true, so not a verdict: a yield, async or a forgotten call returns them."""
_SHOWN_MAX = 100
_NO_ID = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True)
class UserFunction:
    """A function of plain values; shipped with the bolt that calls it.

    Attributes:
        function: takes one value for each field, or one record.
        said: the stream's method that got it, with file and line; see `current_user_call`.
        record_class: the class of the records that it takes, if it takes them; its fields are in the order of the
            values.
    """

    function: Callable[..., Any]
    said: str
    record_class: type[Any] | None = None

    def __str__(self) -> str:
        step, at, place = self.said.partition(" ")
        return f"{step}({name_of(self.function)}){at}{place}"

    def each(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Returns the function's result for each row; an error names the row.

        The function gets copies of lists and mappings, because other steps and other rows may share them.
        """
        rows = [iter(_own(column)) for column in columns]
        try:
            answers = list(map(self.function, *self.arguments(rows)))
        except BaseException as error:
            self._explain(error, columns, len(columns[0]) - length_hint(rows[0]) - 1)
            raise
        if (place := len(answers)) < len(columns[0]):  # `map` takes it for the end of the rows
            raise WrongAnswerError(
                f"{self}, given {_shown(columns, place)}, raised StopIteration, as next() does when nothing is left; "
                "give next() a default, or raise another error"
            )
        return answers

    def verdicts(self, columns: Sequence[list[Any]]) -> list[bool]:
        """Returns for each row whether the function's result is true."""
        verdicts = self.each(columns)
        if {bool}.issuperset(map(type, verdicts)):
            return verdicts
        for place, answer in enumerate(verdicts):
            if isinstance(answer, _ALWAYS_TRUE) or callable(answer):
                raise self.wrong(columns, place, answer, "return True or False, without a yield or async")
            try:
                verdicts[place] = bool(answer)
            except BaseException as error:
                self._explain(error, columns, place)
                raise
        return verdicts

    def call(self, *values: Any) -> Any:
        """Returns the function's result for one row."""
        try:
            return self.function(*values)
        except BaseException as error:
            self._explain(error, [[value] for value in values], 0)
            raise

    def arguments(self, columns: Sequence[Iterable[Any]]) -> Sequence[Iterable[Any]]:
        """Returns the values of each argument of the function: a column each, or the records."""
        return columns if self.record_class is None else [records_of(self.record_class, columns)]

    def lists(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Returns, for each row, a list or tuple of the items that the function returns or yields."""
        results = self.each(columns)
        if _MANY.issuperset(map(type, results)):
            return results
        for place, result in enumerate(results):
            if isinstance(result, _NO_ROWS) or not hasattr(result, "__iter__"):
                raise self.wrong(columns, place, result, "return a list, or yield")
            try:
                results[place] = [one if type(one) in ATOMS else _owned(one) for one in result]
            except BaseException as error:
                self._explain(error, columns, place)
                raise
        return results

    def wrong(self, columns: Sequence[list[Any]], place: int, answer: object, remedy: str) -> WrongAnswerError:
        """Returns the error about the function's result for one row."""
        given = _shown(columns, place)
        return WrongAnswerError(f"{self}, given {given}, returned {cut(answer, _SHOWN_MAX)}; {remedy}")

    def _explain(self, error: BaseException, columns: Sequence[list[Any]], place: int) -> None:
        error.add_note(f"in {self}, given {_shown(columns, place)}")


class Explained:
    """Adds the user's call to an error, such as "sum_by at words.py:7"; for steps that call no user function."""

    __slots__ = ("_said",)

    def __init__(self, said: str) -> None:
        self._said = said

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            error.add_note(f"in {self._said}")


def current_user_call() -> str:
    """Returns the user's current call, with file and line, such as "map at words.py:7" (driver)."""
    frame = sys._getframe(1)  # noqa: SLF001 - the way to the user's line
    called = frame.f_code.co_name
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        called, frame = frame.f_code.co_name, frame.f_back
    return f"{called} at {frame.f_code.co_filename}:{frame.f_lineno}"


def step_of(said: str) -> str:
    """Returns the method in a user's call, as `current_user_call` returned it."""
    return said.partition(" ")[0]


def place_of(said: str) -> str:
    """Returns file and line of a user's call, as `current_user_call` returned it."""
    return said.partition(" at ")[2]


def name_of(function: Callable[..., Any]) -> str:
    """Returns a function's name for readers, such as str.split."""
    if isinstance(function, partial):
        return name_of(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__)).rpartition("<locals>.")[2]


def id_of(name: str) -> str:
    """Returns a component id made from a name in the user's code; "" for a lambda."""
    return _NO_ID.sub("_", name.replace("<lambda>", "").rpartition(".")[2]).strip("_")


def module_of(function: Callable[..., Any]) -> str:
    """Returns the module that an executor has to import for a function."""
    if isinstance(function, partial):
        return module_of(function.func)
    return str(getattr(function, "__module__", None) or type(function).__module__)


def _own(column: list[Any]) -> list[Any]:
    """Returns a column with its own copies of lists and mappings."""
    if any(issubclass(kind, _MUTABLE) for kind in {*map(type, column)}):
        return list(map(_owned, column))
    return column


def _owned(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, _MUTABLE) else value


def _shown(columns: Sequence[list[Any]], place: int) -> str:
    return ", ".join(cut(column[place], _SHOWN_MAX) for column in columns)
