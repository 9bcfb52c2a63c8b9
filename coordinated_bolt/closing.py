"""Closing several things of the user's: each gets its turn, whatever the others raise."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from state.errors import UserCodeError


def close_all(closings: Iterable[Callable[[], None]]) -> None:
    """Calls every one, in order, and only then raises what the first of them raised that did.

    Raises:
        UserCodeError: the first; anything else ends the calls at once.
    """
    errors = []
    for close in closings:
        try:
            close()
        except UserCodeError as error:
            errors.append(error)
    if errors:
        raise errors[0]
