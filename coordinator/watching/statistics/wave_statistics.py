"""The figures common to runs of both kinds of topologies, and their course in a bounded number of points."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from coordinated_bolt.watching.metrics import ComponentMetrics

POINTS_MAX = 1_000
"""Most points that a series keeps; a plot of more points looks the same."""
RATES_SPAN_S = 10.0

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
    """The time of one wave.

    Attributes:
        since_start_s: when it ended, in seconds since the first wave was started.
        seconds: how long its processing phase took.
        size: attempts in it, or tuples of a plain wave.
    """

    since_start_s: float
    seconds: float
    size: int


class Series(Generic[Point]):
    """Points in order of time: all of them at first, later every second, fourth, …, and always the last."""

    def __init__(self) -> None:
        self._kept: list[Point] = []
        self._last: Point | None = None
        self._count = 0
        self._stride = 1

    def add(self, point: Point) -> None:
        """Adds a point, which is now the last."""
        if self._count % self._stride == 0:
            if len(self._kept) == POINTS_MAX:
                del self._kept[1::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self._kept.append(point)
        self._last = point
        self._count += 1

    def points(self) -> list[Point]:
        """Returns the kept points, and the last point."""
        if self._last is None or self._kept[-1] is self._last:
            return [*self._kept]
        return [*self._kept, self._last]

    def copied(self) -> Series[Point]:
        """Returns an independent copy."""
        series: Series[Point] = Series()
        series._kept, series._last = [*self._kept], self._last
        series._count, series._stride = self._count, self._stride
        return series


class RecentRates:
    """The growth per second of some counts, over about the last `RATES_SPAN_S` seconds."""

    def __init__(self, figure_count: int) -> None:
        self._none = (0,) * figure_count
        self._samples: deque[tuple[float, tuple[int, ...]]] = deque()

    def update(self, now_s: float, first_wave_s: float | None, *counts: int) -> None:
        """Takes the current counts.

        Rates leave out the time before the first wave, when Spark starts. The counts are totals since the start of the
        run, always in the same order.
        """
        if not self._samples:
            self._samples.append((now_s if first_wave_s is None else first_wave_s, self._none))
        self._samples.append((now_s, counts))
        while len(self._samples) > 2 and self._samples[1][0] <= now_s - RATES_SPAN_S:
            self._samples.popleft()

    def per_second(self, now_s: float) -> tuple[float, ...]:
        """Returns the rates in the order of the counts, zeros while no time has passed."""
        started_s, before = self._samples[0] if self._samples else (now_s, self._none)
        seconds = now_s - started_s
        if seconds <= 0:
            return (0.0,) * len(self._none)
        _, counts = self._samples[-1]
        return tuple((count - earlier) / seconds for count, earlier in zip(counts, before, strict=True))


@dataclass(slots=True)
class RunHistory:
    """The course of one run (driver).

    Attributes:
        moments: a point for every result.
        waves: a point for every wave whose time was measured.
    """

    moments: Series[RunPoint] = field(default_factory=Series)
    waves: Series[WaveTime] = field(default_factory=Series)

    def copied(self) -> RunHistory:
        """Returns an independent copy."""
        return RunHistory(self.moments.copied(), self.waves.copied())


@dataclass(slots=True)
class WaveStatistics:
    """The figures of one run (driver); times are seconds on the run's clock.

    Figures of one kind of run only, such as commits or acks, are in the class of that kind.

    Attributes:
        waves: number of waves that were started.
        is_interrupted: the run was drained before its natural end.
        components: component id -> its work.
        first_wave_s: when the first wave was started, None before.
        last_result_s: when a group was last committed, or a plain wave last ended; None before.
        history: the course of the run, for its report.
    """

    waves: int = 0
    is_interrupted: bool = False
    components: dict[str, ComponentMetrics] = field(default_factory=dict)
    first_wave_s: float | None = None
    last_result_s: float | None = None
    history: RunHistory = field(default_factory=RunHistory, compare=False)

    @property
    def seconds(self) -> float:
        """The time from the start of the first wave to the last result."""
        if self.first_wave_s is None or self.last_result_s is None:
            return 0.0
        return self.last_result_s - self.first_wave_s

    def per_second(self, count: int) -> float:
        """Returns a count of the run per second, 0 before the first result."""
        return round(count / self.seconds, 1) if self.seconds > 0 else 0.0

    def own_counters(self) -> list[tuple[str, str, int]]:
        """Returns name, meaning and count of the metrics that only this kind of run has."""
        return []

    def first_wave(self) -> WaveTime | None:
        """Returns the time of the first wave; None if it has not ended, or was not measured."""
        return next(iter(self.history.waves.points()), None)

    def wave_started(self, now_s: float) -> None:
        """Counts a started wave."""
        self.waves += 1
        if self.first_wave_s is None:
            self.first_wave_s = now_s

    def moment(self, now_s: float, done: int, failed: int) -> None:
        """Records the run's figures at this moment."""
        self.history.moments.add(RunPoint(self._since_start(now_s), done, failed))

    def wave_ended(self, now_s: float, seconds: float, size: int) -> None:
        """Records a wave's time; 0 seconds means that it was not measured."""
        if seconds > 0:
            self.history.waves.add(WaveTime(self._since_start(now_s), seconds, size))

    def _since_start(self, now_s: float) -> float:
        return 0.0 if self.first_wave_s is None else now_s - self.first_wave_s

    def component(self, component_id: str) -> ComponentMetrics:
        """Returns a component's work so far, to add to."""
        done = self.components.get(component_id)
        if done is None:
            done = self.components[component_id] = ComponentMetrics()
        return done
