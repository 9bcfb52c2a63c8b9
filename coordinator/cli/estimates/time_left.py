"""Estimates how long a run still takes, from how the committed part of its input grows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

WINDOW_S = 30.0
STEPS_MIN = 3
"""Growths before an estimate: the first waves are slow, because the engine is still warming up."""
TIME_MIN_S = 4.0
PART_MIN = 0.01
TIME_MAX_S = 99 * 3600.0


class TimeLeft:
    """The time until the input is committed, None as long as it would be a guess.

    It is one while the part has grown fewer than three times since the first commit, by less than a hundredth, or for
    less than four seconds. Then the rate of the last half minute counts. While nothing is committed, that rate falls
    and the estimate grows.

    Args:
        clock: the run's clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._growths: deque[tuple[float, float]] = deque()  # bounded by WINDOW_S

    def update(self, part: float | None) -> None:
        """Takes the part of the input that is committed, from 0 to 1; None while the input's size is unknown."""
        if part is None or (self._growths and part <= self._growths[-1][1]):
            return
        now_s = self._clock()
        self._growths.append((now_s, part))
        while len(self._growths) > STEPS_MIN + 1 and self._growths[1][0] < now_s - WINDOW_S:
            self._growths.popleft()

    def seconds(self) -> float | None:
        """Returns the time left in seconds, or None."""
        if len(self._growths) <= STEPS_MIN:
            return None
        (began_s, before), (_, part) = self._growths[0], self._growths[-1]
        passed_s = self._clock() - began_s
        if passed_s < TIME_MIN_S or part - before < PART_MIN:
            return None
        left_s = (1.0 - part) * passed_s / (part - before)
        return left_s if left_s <= TIME_MAX_S else None


def shown_time(seconds: float) -> str:
    """Returns a time as 0:07, 12:30 or 3:05:00."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
