"""Checks the options of runs and spouts; the field of each option has its check next to its default."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field, fields
from typing import Any, TypeVar

from state.errors import TopologyError
from state.values.whole import is_number, is_whole

Check = Callable[[object], str]
"""Value -> a phrase that asks for another value; "" if this one can be used."""
Value = TypeVar("Value")


def checked(default: Value, check: Check, *, may_be_none: bool = False) -> Value:
    """Returns a dataclass field with its default and its check; None passes if it `may_be_none`."""
    passes: Check = (lambda value: "" if value is None else check(value)) if may_be_none else check
    made: Value = field(default=default, metadata={"check": passes})
    return made


def refuse_wrong_options(options: Any) -> None:
    """Runs the check of every field that has one; called by ``__post_init__``.

    Raises:
        TopologyError: a value cannot be used; the message names the option, and which values can be.
    """
    for entry in fields(options):
        value = getattr(options, entry.name)
        wanted = entry.metadata["check"](value) if "check" in entry.metadata else ""
        if wanted:
            raise TopologyError(f"option {entry.name} is {value!r}; {wanted}")


def count(least: int = 1, most: float = math.inf, why: str = "") -> Check:
    """Returns the check of a whole number; in its message, `why` follows the maximum."""

    def check(value: object) -> str:
        if not is_whole(value, least):
            return f"give an integer of at least {least}"
        return f"give at most {most}{why}" if value > most else ""

    return check


def seconds(*, above_zero: bool = False) -> Check:
    """Returns the check of a duration, which may be 0 unless `above_zero`."""

    def check(value: object) -> str:
        if is_number(value) and 0 <= value < math.inf and (value or not above_zero):
            return ""
        return f"give a number of seconds{' above 0' if above_zero else ', 0 or more'}"

    return check


def fraction() -> Check:
    """Returns the check of a number from 0 to 1."""

    def check(value: object) -> str:
        return "" if is_number(value) and 0 <= value <= 1 else "give a number from 0 to 1"

    return check


def one_of(words: Mapping[str, str]) -> Check:
    """Returns the check of a word; `words` gives each word its meaning, "" if it needs no explanation."""
    meanings = "; ".join(f"{word}: {meaning}" for word, meaning in words.items())
    wanted = f"one of these words: {meanings}" if any(words.values()) else f"one of {', '.join(words)}"
    return lambda value: "" if value in [*words] else f"give {wanted}"


def refuse_unknown(name: str, given: Any, known: Iterable[str]) -> None:
    """Refuses a word that a source was given but does not know.

    Raises:
        TopologyError: the word is none of the known ones.
    """
    choices = [str(each) for each in known]
    if given not in choices:
        raise TopologyError(f"{name}={given!r} is unknown; choose one of {', '.join(map(repr, choices))}")


def names_in(given: Any) -> tuple[str, ...]:
    """Returns the names in a list, or the single name given in its place; none if something else was given.

    A set counts as something else: its order differs from process to process.
    """
    is_list = isinstance(given, Iterable) and not isinstance(given, Set)
    listed = (given,) if isinstance(given, str) else tuple(given) if is_list else ()
    return listed if all(isinstance(name, str) for name in listed) else ()


def positive(owner: str, name: str, given: Any) -> int:
    """Returns a whole number of at least 1 that a spout was given, possibly as text from the command line.

    Raises:
        TopologyError: it is not such a number.
    """
    number = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if not is_whole(number, 1):
        raise TopologyError(f"{name}={given!r} of {owner} has to be a whole number of at least 1")
    return number
