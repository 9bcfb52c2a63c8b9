"""How many attempts a wave takes: a fixed number, or as many as finish in about a given time. Pure.

A wave costs Spark about the same however little it holds, so small transactions want large waves; but a long wave
delays its commits and repeats much if it fails. Without a fixed window the run therefore adapts the size: full waves
that end early make it grow, waves that take too long make it shrink, though never below its first value.

How long is too long depends on a wave's fixed cost, which may be half of the target time. Waves may then take longer,
up to `STRETCH` times the target, because in a backlog that does not shrink transactions wait longer than for any wave.
Without a backlog waves are not full, and none of this matters.
"""

from __future__ import annotations

MEMORY = 0.75
"""The factor by which an earlier wave's weight shrinks with each later one."""
SPREAD = 0.1
"""The least standard deviation of sizes, relative to their mean, that separates fixed cost from cost per attempt."""
FADING = 0.95
"""The factor by which the fixed cost shrinks with each wave that cannot confirm it; sizes then vary and show it."""


class WaveCost:
    """The costs of a run's waves.

    Attributes:
        fixed_s: the part of a wave's time that does not depend on its size; None before sizes have differed.
    """

    def __init__(self) -> None:
        self.fixed_s: float | None = None
        self._weight = self._size = self._seconds = 0.0
        self._sizes_squared = self._sizes_by_seconds = 0.0

    def note(self, size: int, seconds: float) -> None:
        """Records a wave of `size` attempts that took `seconds`."""
        self._weight = MEMORY * self._weight + 1
        self._size = MEMORY * self._size + size
        self._seconds = MEMORY * self._seconds + seconds
        self._sizes_squared = MEMORY * self._sizes_squared + size * size
        self._sizes_by_seconds = MEMORY * self._sizes_by_seconds + size * seconds
        size_mean, seconds_mean = self._size / self._weight, self._seconds / self._weight
        variance = self._sizes_squared / self._weight - size_mean**2
        if variance >= (SPREAD * size_mean) ** 2:
            attempt_s = (self._sizes_by_seconds / self._weight - size_mean * seconds_mean) / variance
            self.fixed_s = min(seconds_mean, max(0.0, seconds_mean - size_mean * attempt_s))
        elif self.fixed_s is not None:
            self.fixed_s *= FADING


FIRST_SIZE = 32
"""Attempts of a full wave before any was timed; a timed wave is never made smaller than this."""
FIRST_LIMIT = 4
"""Attempts of the first wave, which is committed early; the next ones double."""
LARGEST_SIZE = 1024
"""Most attempts of a wave, however short waves are: the driver keeps a record of every attempt in flight."""
TOLERANCE = 1.25
"""A duration within this factor of the allowed time changes nothing."""
STRETCH = 2
"""How many times the target time a full wave may take, if shorter waves are mostly fixed cost."""
FIXED_SHARE = 1 / 10
"""The fixed cost's share of a wave's time above which longer waves are better."""


class WaveSize:
    """The size of the next wave.

    Args:
        window: most transactions in flight: a wave takes half of them, so that two can be in flight. None lets the
            size follow the time that waves take.
        target_s: how long a wave should take, in seconds.
    """

    def __init__(self, window: int | None, target_s: float) -> None:
        self._is_timed = window is None
        self._target_s = target_s
        self._cost = WaveCost()
        self._is_warm = False
        self._largest = LARGEST_SIZE if window is None else -(-window // 2)
        self._window = window
        self._full = FIRST_SIZE if window is None else self._largest
        self._limit = self._full if window is not None else FIRST_LIMIT

    @property
    def limit(self) -> int:
        """Most attempts of the next wave."""
        return self._limit

    def is_full_size(self) -> bool:
        """Returns whether the next wave may be full, of more than one attempt: neither start nor crash limits it."""
        return self._limit == self._full > 1

    def window(self) -> int:
        """Returns how many transactions may be in flight now."""
        return 2 * self._full if self._window is None else self._window

    def window_max(self) -> int:
        """Returns how many transactions may ever be in flight."""
        return 2 * LARGEST_SIZE if self._window is None else self._window

    def processed(self, count: int, seconds: float) -> None:
        """Records that a wave of `count` attempts was processed in `seconds`, 0 if that is unknown.

        At first, and after a crash, sizes double up to the full size.
        """
        if self._is_timed and seconds > 0:
            self._follow(count, seconds)
        self._limit = min(self._full, 2 * self._limit)

    def _follow(self, count: int, seconds: float) -> None:
        """Moves the full size towards the allowed time, by a factor of two at most."""
        if not self._is_warm:  # the first wave waits for workers to start
            self._is_warm = True
            return
        self._cost.note(count, seconds)
        ratio = self._allowed_s(seconds) / seconds
        if ratio > TOLERANCE and count >= self._full:
            self._full = min(self._largest, int(count * min(2.0, ratio)))
        elif ratio < 1 / TOLERANCE and count > FIRST_SIZE:
            self._full = min(self._full, max(FIRST_SIZE, int(count * max(0.5, ratio))))

    def _allowed_s(self, seconds: float) -> float:
        """Returns how long a full wave may take; an unknown fixed cost is taken to be the whole last wave."""
        fixed_s = seconds if self._cost.fixed_s is None else self._cost.fixed_s
        return min(STRETCH * self._target_s, max(self._target_s, fixed_s / FIXED_SHARE))

    def halve(self, size: int) -> None:
        """Limits the next wave to half of `size` attempts, unless it is limited to fewer already."""
        self._limit = max(1, min(self._limit, size // 2))

    def keep_below(self, size: int) -> None:
        """Limits all further waves to half of `size` attempts, because that many take too long."""
        self._largest = self._full = max(1, min(self._full, size // 2))
        self._limit = min(self._limit, self._full)

    def validate(self) -> None:
        """Checks the sizes against one another.

        Raises:
            AssertionError: they disagree.
        """
        assert 1 <= self._limit <= self._full <= self._largest
