"""Closes several objects of the user's: each gets its turn, even if others fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinated_bolt.completeness.failure import Failure


def close_all(closings: Iterable[Callable[[], Failure | None]]) -> Failure | None:
    """Calls each in order, and only then returns the first failure, if any."""
    failures = [close() for close in closings]
    return next((failure for failure in failures if failure is not None), None)
