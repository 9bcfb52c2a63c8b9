"""The figures that runs of both kinds of topologies share, since both run in waves."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.reports.run_history import RunHistory, RunPoint, WaveTime


@dataclass(slots=True)
class WaveStatistics:
    """The figures of one run (driver); times are seconds on the run's clock.

    Figures of one kind of run only, such as commits or acks, are in the class of that kind.

    Attributes:
        waves: number of waves that were started.
        is_interrupted: the run was drained before it would have ended by itself.
        components: component id -> what it did.
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
        """Returns a count of the run by second, 0 before the first result."""
        return round(count / self.seconds, 1) if self.seconds > 0 else 0.0

    def wave_started(self, now_s: float) -> None:
        """Counts a wave that is started."""
        self.waves += 1
        if self.first_wave_s is None:
            self.first_wave_s = now_s

    def moment(self, now_s: float, done: int, failed: int) -> None:
        """Notes how the run stands now."""
        self.history.moments.add(RunPoint(self._since_start(now_s), done, failed))

    def wave_ended(self, now_s: float, seconds: float, size: int) -> None:
        """Notes a wave that took that long; nobody has measured one that took 0 seconds."""
        if seconds > 0:
            self.history.waves.add(WaveTime(self._since_start(now_s), seconds, size))

    def _since_start(self, now_s: float) -> float:
        return 0.0 if self.first_wave_s is None else now_s - self.first_wave_s

    def component(self, component_id: str) -> ComponentMetrics:
        """Returns what a component did so far, to be added to."""
        return self.components.setdefault(component_id, ComponentMetrics())
