"""Closes several objects of the user's: each gets its turn, even if others raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from state.errors import UserCodeError


def close_all(closings: Iterable[Callable[[], None]]) -> None:
    """Calls each in order, and only then raises the first error.

    Raises:
        UserCodeError: the first that was raised; any other exception ends the calls at once.
    """
    errors = []
    for close in closings:
        try:
            close()
        except UserCodeError as error:
            errors.append(error)
    if errors:
        raise errors[0]
