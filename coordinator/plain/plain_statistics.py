"""The figures of a run of a plain topology, for progress and for the final summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.statistics.wave_statistics import WaveStatistics
from state.printable import counted

if TYPE_CHECKING:
    from coordinator.watching.statistics.run_report import RunReport


@dataclass(slots=True, repr=False)
class PlainStatistics(WaveStatistics):
    """The figures of one run of a plain topology; times are seconds on the run's clock.

    `is_interrupted` means that the run was drained although it was meant to end once its spouts were idle. For a wave
    that crashed, `components` counts only the work of its spouts.

    Attributes:
        emitted: tuples that the spouts emitted, with or without a message id, including replays.
        acked: messages that were acked.
        failed: messages that failed.
        crashed_waves: waves that crashed.
    """

    emitted: int = 0
    acked: int = 0
    failed: int = 0
    crashed_waves: int = 0

    def worked(self, metrics: Mapping[str, ComponentMetrics]) -> None:
        """Counts the work of bolts in a wave."""
        for component_id, done in metrics.items():
            self.component(component_id).merge(done)

    def copied(self) -> PlainStatistics:
        """Returns a copy that no longer changes; called on the run's own thread."""
        return replace(
            self,
            components={component_id: done.copied() for component_id, done in self.components.items()},
            history=self.history.copied(),
        )

    def figures(self) -> list[tuple[str, Any]]:
        """Returns the figures that tables and reports show, as (name, value)."""
        return [
            ("tuples emitted", self.emitted),
            ("acked", self.acked),
            ("failed", self.failed),
            ("seconds", round(self.seconds, 3)),
            ("tuples/s", self.per_second(self.emitted)),
            ("waves", self.waves),
            ("crashed waves", self.crashed_waves),
        ]

    def own_counters(self) -> list[tuple[str, str, int]]:
        return [
            ("txbatch_emitted_tuples", "Tuples the spouts emitted, replays included.", self.emitted),
            ("txbatch_acked_messages", "Messages that were processed.", self.acked),
            ("txbatch_failed_messages", "Messages that failed.", self.failed),
        ]

    def report(self, title: str = "run") -> RunReport:
        """Returns a report of the run so far: figures, tables, and plots if matplotlib is installed.

        Args:
            title: title of the report.
        """
        from coordinator.watching.statistics.run_report import RunReport  # needed only for a report

        components = {component_id: done.copied() for component_id, done in self.components.items()}
        return RunReport(title, self.figures(), "acked messages", "messages", components, self.history.copied())

    def __repr__(self) -> str:
        return (
            f"PlainStatistics({counted(self.emitted, 'tuple')} emitted in {self.seconds:.1f} s, {self.acked:,} acked, "
            f"{self.failed:,} failed, {counted(self.waves, 'wave')})"
        )

    def _repr_html_(self) -> str:
        from coordinator.watching.statistics.run_report import tables_of  # only a notebook needs it

        return tables_of("plain run", self.figures(), self.components)

    def to_dict(self, topology_id: str) -> dict[str, Any]:
        """Returns the fields of the final JSON line."""
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
