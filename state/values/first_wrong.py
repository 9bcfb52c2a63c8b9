"""Finds the first of many values that a state would refuse, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple


class Wrong(NamedTuple):
    """A value that would be refused."""

    place: int
    error: TypeError | ValueError


def first_wrong(values: Iterable[Any], check: Callable[[Any], object]) -> Wrong | None:
    """Returns the first value for which a check raises a TypeError or ValueError; None if all pass."""
    for place, value in enumerate(values):
        try:
            check(value)
        except (TypeError, ValueError) as error:
            return Wrong(place, error)
    return None
