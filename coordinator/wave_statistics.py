"""What runs of both kinds of topologies count alike, since both go in waves."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinated_bolt.watching.metrics import ComponentMetrics


@dataclass(slots=True)
class WaveStatistics:
    """Figures of one run (driver); times are seconds on the run's clock.

    What only one kind of run can tell, such as commits or acks, is in the class of that kind.

    Attributes:
        waves: waves that were started.
        is_interrupted: the run was drained before it would have ended by itself.
        components: component id -> what it did.
        first_wave_s: when the first wave was started, None before.
        last_result_s: when a result was last final, None before: a group was committed; a plain wave had ended.
    """

    waves: int = 0
    is_interrupted: bool = False
    components: dict[str, ComponentMetrics] = field(default_factory=dict)
    first_wave_s: float | None = None
    last_result_s: float | None = None

    @property
    def seconds(self) -> float:
        """From the start of the first wave to the last result."""
        if self.first_wave_s is None or self.last_result_s is None:
            return 0.0
        return self.last_result_s - self.first_wave_s

    def wave_started(self, now_s: float) -> None:
        """A wave is started."""
        self.waves += 1
        if self.first_wave_s is None:
            self.first_wave_s = now_s

    def component(self, component_id: str) -> ComponentMetrics:
        """What a component did so far, to be added to."""
        return self.components.setdefault(component_id, ComponentMetrics())
