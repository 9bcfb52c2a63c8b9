"""What a run of a plain topology has done so far, for progress and for its last line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.watching.metrics import ComponentMetrics


@dataclass(slots=True)
class PlainStatistics:
    """Figures of one run; times are seconds on the run's clock.

    Attributes:
        emitted: tuples the spouts emitted, with a message id or without, replays included.
        acked: messages the spouts were told are processed.
        failed: messages the spouts were told have failed.
        waves: waves that were run.
        crashed_waves: those of them that crashed.
        first_wave_s: when the first wave was started, None before.
        last_wave_s: when the last wave had ended, None before.
        is_interrupted: the run was drained although it was to end by itself once its spouts were idle.
        components: component id -> what it did; of a wave that crashed, only what its spouts did.
    """

    emitted: int = 0
    acked: int = 0
    failed: int = 0
    waves: int = 0
    crashed_waves: int = 0
    first_wave_s: float | None = None
    last_wave_s: float | None = None
    is_interrupted: bool = False
    components: dict[str, ComponentMetrics] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """From the start of the first wave to the end of the last."""
        if self.first_wave_s is None or self.last_wave_s is None:
            return 0.0
        return self.last_wave_s - self.first_wave_s

    def started(self, now_s: float) -> None:
        """A wave is started."""
        self.waves += 1
        if self.first_wave_s is None:
            self.first_wave_s = now_s

    def worked(self, metrics: Mapping[str, ComponentMetrics]) -> None:
        """Bolts did this in a wave."""
        for component_id, done in metrics.items():
            self.components.setdefault(component_id, ComponentMetrics()).merge(done)

    def to_dict(self, topology_id: str) -> dict[str, Any]:
        """The fields of the final JSON line."""
        return {
            "topology": topology_id,
            "emitted": self.emitted,
            "acked": self.acked,
            "failed": self.failed,
            "waves": self.waves,
            "crashed_waves": self.crashed_waves,
            "seconds": round(self.seconds, 3),
            "components": {name: self.components[name].to_dict() for name in sorted(self.components)},
        }
