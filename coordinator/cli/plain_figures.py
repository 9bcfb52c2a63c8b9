"""The figures shown while a plain topology runs: its rate over the last seconds, and what failed."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.cli.recent_rates import RecentRates
from coordinator.plain.run_summary import PlainStatistics
from state.printable import counted


class PlainFigures:
    """The current figures of a plain run.

    Args:
        clock: the run's clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._rates = RecentRates(clock, 1)
        self.statistics = PlainStatistics()

    def update(self, statistics: PlainStatistics) -> None:
        self.statistics = statistics
        self._rates.update(statistics.first_wave_s, statistics.emitted)

    def rate(self) -> float:
        """Returns the tuples emitted per second, over the last seconds."""
        (emitted,) = self._rates.per_second()
        return emitted

    def line(self) -> str:
        counts = f"{self.statistics.acked:,} acked · {self.statistics.failed:,} failed"
        return f"{self.statistics.emitted:,} emitted · {self.rate():,.0f} tuples/s · {counts}"

    def parts(self) -> list[str]:
        emitted, failed = f"{self.statistics.emitted:,} emitted", f"{self.statistics.failed:,} failed"
        return [emitted, f"{self.rate():,.0f} tuples/s", f"{self.statistics.acked:,} acked", failed]

    def summary(self) -> str:
        return plain_summary_line(self.statistics)

    def has_begun(self) -> bool:
        return self.statistics.waves > 0

    def has_ended_first_wave(self) -> bool:
        return self.statistics.waves > 0

    def has_result(self) -> bool:
        return self.statistics.acked > 0

    def fraction(self) -> float | None:
        return None  # spouts of plain topologies do not know how much is left


def plain_summary_line(statistics: PlainStatistics) -> str:
    """Returns what a plain run has done as one line."""
    line = (
        f"{counted(statistics.emitted, 'tuple')} emitted in {statistics.seconds:.1f} s, {statistics.acked:,} acked, "
        f"{statistics.failed:,} failed, {counted(statistics.waves, 'wave')}"
    )
    return f"{line}, {statistics.crashed_waves:,} of them crashed" if statistics.crashed_waves else line
