"""Computes how fast the figures of a run grow, over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

WINDOW_S = 10.0


class RecentRates:
    """The growth per second of some counts, over about the last `WINDOW_S` seconds.

    Args:
        clock: the run's clock, in seconds.
        figure_count: how many counts there are.
    """

    def __init__(self, clock: Callable[[], float], figure_count: int) -> None:
        self._clock = clock
        self._none = (0,) * figure_count
        self._samples: deque[tuple[float, tuple[int, ...]]] = deque([(clock(), self._none)])

    def update(self, first_wave_s: float | None, *counts: int) -> None:
        """Takes the current counts.

        Args:
            first_wave_s: when the first wave was started, None before; rates leave out the time before it, when
                Spark starts.
            counts: totals since the start of the run, always in the same order.
        """
        now_s = self._clock()
        if len(self._samples) == 1 and first_wave_s is not None:
            self._samples[0] = (first_wave_s, self._none)
        self._samples.append((now_s, counts))
        while len(self._samples) > 2 and self._samples[1][0] < now_s - WINDOW_S:
            self._samples.popleft()

    def per_second(self) -> tuple[float, ...]:
        """Returns the current rates, in the order of the counts."""
        (started_s, before), (_, counts) = self._samples[0], self._samples[-1]
        seconds = self._clock() - started_s
        if seconds <= 0:
            return (0.0,) * len(self._none)
        return tuple((count - earlier) / seconds for count, earlier in zip(counts, before, strict=True))
