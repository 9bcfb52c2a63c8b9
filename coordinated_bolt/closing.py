"""Closing several things of the user's: each gets its turn, whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinated_bolt.completeness.failure import Failure


def close_all(closings: Iterable[Callable[[], Failure | None]]) -> Failure | None:
    """Calls every one, in order, and returns the first failure, if there is one."""
    failures = [close() for close in closings]
    return next((failure for failure in failures if failure is not None), None)
