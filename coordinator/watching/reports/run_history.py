"""What a run has done over time, in a bounded number of points. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

POINTS_MAX = 1_000
"""Most points that a series keeps; a plot of more looks the same."""

Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class RunPoint:
    """The figures of a run at one time.

    Attributes:
        since_start_s: seconds since the first wave was started.
        done: transactions committed, or messages acked, until then.
        failed: attempts, or messages, that failed until then.
    """

    since_start_s: float
    done: int
    failed: int


@dataclass(frozen=True, slots=True)
class WaveTime:
    """How long a wave took.

    Attributes:
        since_start_s: when it ended, in seconds since the first wave was started.
        seconds: how long its processing phase took.
        size: attempts in it, or tuples of a plain wave.
    """

    since_start_s: float
    seconds: float
    size: int


class Series(Generic[Point]):
    """Points in the order of their time: all of them at first, later every second, fourth, …, and always the last."""

    def __init__(self) -> None:
        self._kept: list[Point] = []
        self._last: Point | None = None
        self._count = 0
        self._stride = 1

    def add(self, point: Point) -> None:
        """Adds a point, which is the last for now."""
        if self._count % self._stride == 0:
            if len(self._kept) == POINTS_MAX:
                del self._kept[1::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self._kept.append(point)
        self._last = point
        self._count += 1

    def points(self) -> list[Point]:
        """Returns what was kept, and the last point."""
        if self._last is None or self._kept[-1] is self._last:
            return [*self._kept]
        return [*self._kept, self._last]

    def copied(self) -> Series[Point]:
        """Returns a copy that stays as it is."""
        series: Series[Point] = Series()
        series._kept, series._last = [*self._kept], self._last
        series._count, series._stride = self._count, self._stride
        return series


@dataclass(slots=True)
class RunHistory:
    """The course of one run (driver).

    Attributes:
        moments: after every result.
        waves: after every wave whose time was measured.
    """

    moments: Series[RunPoint] = field(default_factory=Series)
    waves: Series[WaveTime] = field(default_factory=Series)

    def copied(self) -> RunHistory:
        """Returns a copy that stays as it is."""
        return RunHistory(self.moments.copied(), self.waves.copied())
