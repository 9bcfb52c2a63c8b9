"""Converts expiry times given by users (a date, a time or seconds since 1970) to milliseconds since 1970. Pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from operator import index
from typing import Any, TypeAlias

from state.values.state_kind import MAX_INTEGER

When: TypeAlias = date | datetime | int
"""A date, which is its start in UTC; a datetime with a time zone; or whole seconds since 1970."""
MILLISECONDS_FROM = 100_000_000_000
"""Numbers from here on are taken for milliseconds: as milliseconds in the year 1973, as seconds in the year 5138."""


def expiry_ms(given: Any, said: str) -> int:
    """Returns milliseconds since 1970.

    Args:
        given: the `When` that a user gave.
        said: the beginning of a message, such as ``expire_at of state 'views' returned 3``.

    Raises:
        TypeError, ValueError: the value is not a `When`, or is too far from now.
    """
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise ValueError(f"{said}, a time without a time zone; give one, as in tzinfo=datetime.UTC")
        seconds = given.timestamp()
    elif isinstance(given, date):
        seconds = datetime.combine(given, time(), UTC).timestamp()
    elif hasattr(given, "__index__") and not isinstance(given, bool):
        seconds = given = index(given)  # NumPy has integers of its own
    else:
        raise TypeError(f"{said}; give a date, a datetime with a time zone, or whole seconds since 1970")
    expires_ms = round(seconds * 1000)
    if type(given) is int and given >= MILLISECONDS_FROM:
        raise ValueError(f"{said}, which is after the year 5000; if these are milliseconds, give seconds")
    if not 0 < expires_ms <= MAX_INTEGER:
        raise ValueError(f"{said}, which is before 1970 or too far in the future")
    return expires_ms
