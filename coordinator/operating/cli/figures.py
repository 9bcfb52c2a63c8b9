"""The figures shown during a run: rates of the last seconds, the commit lag, and the time left.

Progress shows transactional and plain runs through the same interface; each kind has its own figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from coordinator.operating.cli.estimates import DonePart, TimeLeft, shown_time
from coordinator.plain.plain_statistics import PlainStatistics
from coordinator.watching.failure_cause import FailureCause
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.statistics.wave_statistics import RecentRates
from state.printable import counted

Statistics_contra = TypeVar("Statistics_contra", contravariant=True)


class ShownFigures(Protocol[Statistics_contra]):
    """The figures that progress shows of a run."""

    def update(self, statistics: Statistics_contra) -> None:
        """Takes the run's statistics; called after every event."""

    def line(self) -> str:
        """Returns the current figures as one line."""

    def parts(self) -> list[str]:
        """Returns the figures for a terminal, short, the most important first; none before the first wave."""

    def summary(self) -> str:
        """Returns the result of the run as one line."""

    def has_ended_first_wave(self) -> bool:
        """Returns whether the first wave has ended, which is slow because the engine is still cold."""

    def has_result(self) -> bool:
        """Returns whether the run, even if it failed, has a result to report."""

    def fraction(self) -> float | None:
        """Returns the part of the input that is committed, from 0 to 1; None if the size of the input is unknown."""


class TransactionalFigures:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rates = RecentRates(2)
        self._done, self._left = DonePart(), TimeLeft(clock)
        self.statistics = RunStatistics()

    def update(self, statistics: RunStatistics) -> None:
        self.statistics = statistics
        self._rates.update(self._clock(), statistics.first_wave_s, statistics.committed, statistics.tuples)
        self._done.update(statistics.last_txid, statistics.cut_txid, statistics.fraction)
        if statistics.committed:
            self._left.update(self._done.fraction())

    def rates(self) -> tuple[float, float]:
        transactions, tuples = self._rates.per_second(self._clock())
        return transactions, tuples

    def lag_s(self) -> float:
        """Returns the seconds since the last commit, or since the first wave before it; 0 if nothing is in flight."""
        return self.statistics.commit_lag_s(self._clock())

    def line(self) -> str:
        if self.statistics.cluster:
            return f"txid {self.statistics.last_txid:,} · {self.statistics.cluster}"
        if not self.has_result():
            if not self.statistics.active:
                return f"txid {self.statistics.last_txid:,} · nothing committed yet, nothing in flight"
            return f"txid {self.statistics.last_txid:,} · first wave: {self._in_flight()} for {self.lag_s():.1f} s"
        transactions, tuples = self.rates()
        parts = [
            f"txid {self.statistics.last_txid:,}",
            f"{self.statistics.committed:,} committed",
            f"{transactions:,.1f} transactions/s",
            f"{tuples:,.0f} tuples/s",
            f"commit lag {self.lag_s():.1f} s",
            self._in_flight(),
        ]
        fraction, left_s = self.fraction(), self._left.seconds()
        if fraction is not None:
            parts.append(f"{fraction:.0%} of the input committed")
        if left_s:
            parts.append(f"about {shown_time(left_s)} left")
        return " · ".join(parts)

    def parts(self) -> list[str]:
        if self.statistics.cluster:
            return [self.statistics.cluster]
        if self.statistics.first_wave_s is None:
            return []
        if not self.has_result():
            return [self._in_flight()]
        transactions, tuples = self.rates()
        fraction, left_s = self.fraction(), self._left.seconds()
        first = [] if fraction is None else [f"{fraction:.0%}"]
        first += [f"{shown_time(left_s)} left"] if left_s else []
        return [
            *first,
            f"{self.statistics.committed:,} committed",
            f"{transactions:,.1f}/s",
            f"lag {self.lag_s():.1f} s",
            self._in_flight(),
            f"{tuples:,.0f} tuples/s",
        ]

    def _in_flight(self) -> str:
        return f"{self.statistics.active:,} in flight"

    def summary(self) -> str:
        return summary_line(self.statistics)

    def has_ended_first_wave(self) -> bool:
        return self.statistics.last_result_s is not None

    def has_result(self) -> bool:
        return self.statistics.committed > 0

    def fraction(self) -> float | None:
        return self._done.fraction()


class PlainFigures:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rates = RecentRates(1)
        self.statistics = PlainStatistics()

    def update(self, statistics: PlainStatistics) -> None:
        self.statistics = statistics
        self._rates.update(self._clock(), statistics.first_wave_s, statistics.emitted)

    def rate(self) -> float:
        (emitted,) = self._rates.per_second(self._clock())
        return emitted

    def line(self) -> str:
        counts = f"{self.statistics.acked:,} acked · {self.statistics.failed:,} failed"
        return f"{self.statistics.emitted:,} emitted · {self.rate():,.0f} tuples/s · {counts}"

    def parts(self) -> list[str]:
        if not self.statistics.waves:
            return []
        emitted, failed = f"{self.statistics.emitted:,} emitted", f"{self.statistics.failed:,} failed"
        return [emitted, f"{self.rate():,.0f} tuples/s", f"{self.statistics.acked:,} acked", failed]

    def summary(self) -> str:
        return plain_summary_line(self.statistics)

    def has_ended_first_wave(self) -> bool:
        return self.statistics.waves > 0

    def has_result(self) -> bool:
        return self.statistics.acked > 0

    def fraction(self) -> float | None:
        return None  # spouts of plain topologies do not know how much is left


def summary_line(statistics: RunStatistics) -> str:
    if not statistics.attempts:
        if statistics.last_txid:
            return f"nothing new: already committed up to txid {statistics.last_txid:,}"
        if statistics.is_interrupted:
            return "no transaction was started"
        return "nothing to do: the input has no transactions"
    aside = f", {len(statistics.quarantined):,} quarantined" if statistics.quarantined else ""
    above = statistics.failures[FailureCause.LOWER_FAILED.value]
    return (
        f"{counted(statistics.committed, 'transaction')} committed{aside} in {statistics.seconds:.1f} s, up to txid "
        f"{statistics.last_txid:,}; {failed_line(statistics.attempts, statistics.failed_attempts, above)}"
    )


def plain_summary_line(statistics: PlainStatistics) -> str:
    line = (
        f"{counted(statistics.emitted, 'tuple')} emitted in {statistics.seconds:.1f} s, {statistics.acked:,} acked, "
        f"{statistics.failed:,} failed, {counted(statistics.waves, 'wave')}"
    )
    return f"{line}, {statistics.crashed_waves:,} of them crashed" if statistics.crashed_waves else line


def failed_line(attempts: int, failed: int, above: int, kinds: str = "") -> str:
    """Returns in words how many attempts failed by themselves, and how many higher ones were repeated with them."""
    alone = failed - above
    with_them = f"; {above:,} above {'it' if alone == 1 else 'them'} repeated with {'it' if alone == 1 else 'them'}"
    return f"{alone:,} of {counted(attempts, 'attempt')} failed{kinds}{with_them if above else ''}"
