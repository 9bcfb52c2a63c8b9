"""How fast the figures of a run grow of late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

WINDOW_S = 10.0


class RecentRates:
    """Growth per second of some counts, over about the last `WINDOW_S` seconds.

    Args:
        clock: the run's clock, in seconds.
        figure_count: how many counts there are.
    """

    def __init__(self, clock: Callable[[], float], figure_count: int) -> None:
        self._clock = clock
        self._none = (0,) * figure_count
        self._samples: deque[tuple[float, tuple[int, ...]]] = deque([(clock(), self._none)])

    def update(self, first_wave_s: float | None, *counts: int) -> None:
        """Takes the counts of the moment.

        Args:
            first_wave_s: when the first wave was started: Spark's start before it is part of no rate.
            counts: all of them from 0 on, in an order of the caller's.
        """
        now_s = self._clock()
        if len(self._samples) == 1 and first_wave_s is not None:
            self._samples[0] = (first_wave_s, self._none)
        self._samples.append((now_s, counts))
        while len(self._samples) > 2 and self._samples[1][0] < now_s - WINDOW_S:
            self._samples.popleft()

    def per_second(self) -> tuple[float, ...]:
        """The rates of the moment, in the order of the counts."""
        (started_s, before), (_, counts) = self._samples[0], self._samples[-1]
        seconds = self._clock() - started_s
        if seconds <= 0:
            return (0.0,) * len(self._none)
        return tuple((count - earlier) / seconds for count, earlier in zip(counts, before, strict=True))
