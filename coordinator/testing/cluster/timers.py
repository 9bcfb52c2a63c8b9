"""A clock for tests: it stands still until a test moves it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Timers:
    """Calls actions periodically, on a clock that starts at 0 and is moved by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._numbers = count()
        self._due: list[tuple[float, int, int, float, Callable[[], None]]] = []

    def every(self, period_s: float, action: Callable[[], None]) -> None:
        """Calls an action every `period_s` seconds, more than 0, first at the time `period_s`."""
        heapq.heappush(self._due, (period_s, next(self._numbers), 1, period_s, action))

    def advance(self, seconds: float) -> None:
        """Advances the clock and calls the actions that fall due, in order of time, then of registration.

        Raises:
            ValueError: `seconds` is negative or not finite.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"time cannot be moved by {seconds} seconds; give a finite number of at least 0")
        until_s = self.now_s + seconds
        while self._due and self._due[0][0] <= until_s:
            self.now_s, number, calls, period_s, action = heapq.heappop(self._due)
            # a multiple, not a sum: sums of floats drift
            heapq.heappush(self._due, ((calls + 1) * period_s, number, calls + 1, period_s, action))
            action()
        self.now_s = until_s
