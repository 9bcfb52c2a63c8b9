"""The figures shown while a run lasts: rates over the last seconds, and how far the commit lags.

What progress needs of figures is the same for runs of every kind; what they count is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from coordinator.cli.recent_rates import RecentRates
from coordinator.transactional.run_summary import RunStatistics

Statistics_contra = TypeVar("Statistics_contra", contravariant=True)


class RunFigures(Protocol[Statistics_contra]):
    """What progress shows of a run."""

    def update(self, statistics: Statistics_contra) -> None:
        """Takes the run's statistics; called whenever something has happened."""

    def line(self) -> str:
        """The figures of the moment, in one line."""

    def summary(self) -> str:
        """What the run has done, in one line."""

    def has_begun(self) -> bool:
        """Whether there are figures."""

    def has_result(self) -> bool:
        """Whether a run that failed has done something worth telling."""

    def fraction(self) -> float | None:
        """Part of the input that is done, None if its size is unknown."""


class Figures:
    """What a transactional run's statistics say of the moment.

    Args:
        clock: the run's clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rates = RecentRates(clock, 2)
        self.statistics = RunStatistics()

    def update(self, statistics: RunStatistics) -> None:
        self.statistics = statistics
        self._rates.update(statistics.first_wave_s, statistics.committed, statistics.tuples)

    def rates(self) -> tuple[float, float]:
        """Transactions and tuples committed per second of late."""
        transactions, tuples = self._rates.per_second()
        return transactions, tuples

    def lag_s(self) -> float:
        """Seconds since the last commit, or the first issue before it; 0 when nothing is under way."""
        since = self.statistics.last_result_s or self.statistics.first_wave_s
        if since is None or not self.statistics.active:
            return 0.0
        return max(0.0, self._clock() - since)

    def line(self) -> str:
        transactions, tuples = self.rates()
        parts = [
            f"txid {self.statistics.last_txid:,}",
            f"{self.statistics.committed:,} committed",
            f"{transactions:,.1f} transactions/s",
            f"{tuples:,.0f} tuples/s",
            f"commit lag {self.lag_s():.1f} s",
        ]
        if self.statistics.fraction is not None:
            parts.append(f"{self.statistics.fraction:.0%} of the input cut")
        return " · ".join(parts)

    def summary(self) -> str:
        return summary_line(self.statistics)

    def has_begun(self) -> bool:
        return self.statistics.first_wave_s is not None

    def has_result(self) -> bool:
        return self.statistics.committed > 0

    def fraction(self) -> float | None:
        return self.statistics.fraction


def summary_line(statistics: RunStatistics) -> str:
    """What a transactional run has done, in one line."""
    if not statistics.attempts:
        return f"nothing new, txid {statistics.last_txid:,} is committed already"
    return (
        f"{statistics.committed:,} transactions committed in {statistics.seconds:.1f} s, up to txid "
        f"{statistics.last_txid:,}; {statistics.failed_attempts:,} of {statistics.attempts:,} attempts failed"
    )
