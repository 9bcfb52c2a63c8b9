"""A clock that stands still until it is moved."""

from __future__ import annotations


class ManualClock:
    """Seconds since the run began, moved by `advance` only; called like `time.monotonic`."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Moves the clock.

        Raises:
            ValueError: backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"time cannot go by {seconds!r} seconds; give 0 or more")
        self._now_s += seconds
