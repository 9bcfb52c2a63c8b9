"""A function that a step of the short form was given, with what a message needs to name it."""

from __future__ import annotations

import copy
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import length_hint
from typing import Any

from coordinated_bolt.streams.tuples import cut
from coordinated_bolt.user_code import is_ours
from coordinated_bolt.user_traceback import WrongAnswerError
from state.values.own_copy import ATOMS

_MANY = frozenset({list, tuple})
_NO_ROWS = (str, bytes, type(None))
_MUTABLE = (list, dict, set, tuple, bytearray, deque)
"""What may be changed, or hold something that may."""
_ALWAYS_TRUE = (Iterator, AsyncIterator, Awaitable, type(NotImplemented))
"""What is true whatever it would give: no answer, but what a yield or a forgotten call leaves."""
_SHOWN_MAX = 100


@dataclass(frozen=True)
class UserFunction:
    """A function of plain values; shipped with the bolt that calls it.

    Attributes:
        function: takes one value for each field.
        said: the method of the stream that it was given to, and where; see `said_here`.
    """

    function: Callable[..., Any]
    said: str

    def __str__(self) -> str:
        step, at, place = self.said.partition(" ")
        return f"{step}({name_of(self.function)}){at}{place}"

    def each(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Returns what it returns for each row; what it raises says for which.

        Lists and mappings reach it as copies, for other steps are given the same ones, and other rows may hold them.
        """
        rows = [iter(_own(column)) for column in columns]
        try:
            answers = list(map(self.function, *rows))
        except BaseException as error:
            self._explain(error, columns, len(columns[0]) - length_hint(rows[0]) - 1)
            raise
        if (place := len(answers)) < len(columns[0]):  # which `map` takes for the end of the rows
            raise WrongAnswerError(
                f"{self}, given {_shown(columns, place)}, raised StopIteration, as next() does when nothing is left; "
                "give next() a default, or raise another error"
            )
        return answers

    def verdicts(self, columns: Sequence[list[Any]]) -> list[bool]:
        """Returns for each row whether what it returns is true."""
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
        """Returns what it returns for one row."""
        try:
            return self.function(*values)
        except BaseException as error:
            self._explain(error, [[value] for value in values], 0)
            raise

    def lists(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Returns the list, or tuple, of what it gives for each row: it may return or yield many things, or none."""
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
        """Returns the error about what it returned for the row at a place."""
        given = _shown(columns, place)
        return WrongAnswerError(f"{self}, given {given}, returned {cut(answer, _SHOWN_MAX)}; {remedy}")

    def _explain(self, error: BaseException, columns: Sequence[list[Any]], place: int) -> None:
        error.add_note(f"in {self}, given {_shown(columns, place)}")


class Explained:
    """Adds to an error what the user has asked for, such as "sum_by at words.py:7"; where no function was called."""

    __slots__ = ("_said",)

    def __init__(self, said: str) -> None:
        self._said = said

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            error.add_note(f"in {self._said}")


def said_here() -> str:
    """Returns what the user is calling, with file and line, such as "map at words.py:7" (driver)."""
    frame = sys._getframe(1)  # noqa: SLF001 - the way to the user's line
    called = frame.f_code.co_name
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        called, frame = frame.f_code.co_name, frame.f_back
    return f"{called} at {frame.f_code.co_filename}:{frame.f_lineno}"


def step_of(said: str) -> str:
    """Returns the method of what the user has called."""
    return said.partition(" ")[0]


def place_of(said: str) -> str:
    """Returns file and line of what the user has called."""
    return said.partition(" at ")[2]


def name_of(function: Callable[..., Any]) -> str:
    """Returns how readers call a function, such as str.split."""
    if isinstance(function, partial):
        return name_of(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__)).rpartition("<locals>.")[2]


def module_of(function: Callable[..., Any]) -> str:
    """Returns the module that an executor has to import for a function."""
    if isinstance(function, partial):
        return module_of(function.func)
    return str(getattr(function, "__module__", None) or type(function).__module__)


def _own(column: list[Any]) -> list[Any]:
    """Returns a column whose lists and mappings nobody else has."""
    if any(issubclass(kind, _MUTABLE) for kind in {*map(type, column)}):
        return list(map(_owned, column))
    return column


def _owned(value: Any) -> Any:
    return copy.deepcopy(value) if isinstance(value, _MUTABLE) else value


def _shown(columns: Sequence[list[Any]], place: int) -> str:
    return ", ".join(cut(column[place], _SHOWN_MAX) for column in columns)
