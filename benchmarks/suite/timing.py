"""What of a run is measured: a span of it, or the latency of transactions that arrive at fixed times.

A loop that sends the next transaction once the last one is done measures nothing while the system stalls: the
transactions that should have arrived meanwhile are left out (*coordinated omission*). So for latency each has its
arrival, and its latency counts from there, though the system may look at it much later. Pure: the clock is a parameter.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import percentile
from benchmarks.process_tree import processor_seconds_by_role
from benchmarks.suite.cells import Measurement

PERCENTILES = (50, 90, 99)


def processor_now() -> dict[str, float]:
    """Returns role -> processor seconds that this process and its living descendants have used so far."""
    return {role.value: seconds for role, seconds in processor_seconds_by_role(os.getpid()).items()}


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a run.

    Attributes:
        at_s: on the run's clock.
        transactions: committed so far.
        tuples: in them.
    """

    at_s: float
    transactions: int
    tuples: int


class MeasuredSpan:
    """Finds the two ends while a run goes: the first commit after the warm-up, and the first one after the time is up.

    Both ends lie on a commit, so neither a wave that is half done nor the pause between two commits is counted on one
    side only.

    Args:
        warm_up_s: time before the measurement, from the first call.
        seconds: shortest time to measure.
        processor: returns role -> processor seconds so far; asked at both ends.
    """

    def __init__(self, warm_up_s: float, seconds: float, processor: Callable[[], Mapping[str, float]] = dict) -> None:
        self._warm_up_s, self._seconds, self._processor = warm_up_s, seconds, processor
        self._used: list[Mapping[str, float]] = []
        self._started_s: float | None = None
        self._committed = 0
        self.begin: Mark | None = None
        self.end: Mark | None = None

    def note(self, now_s: float, transactions: int, tuples: int) -> bool:
        """Takes note of the run's progress; called as often as the run likes.

        Returns:
            True if this call has set one of the two ends.
        """
        if self._started_s is None:
            self._started_s = now_s
        if transactions == self._committed or self.end is not None:
            return False
        self._committed = transactions
        if self.begin is None:
            if now_s < self._started_s + self._warm_up_s:
                return False
            self.begin = Mark(now_s, transactions, tuples)
            self._used.append(self._processor())
            return True
        if now_s < self.begin.at_s + self._seconds:
            return False
        self.end = Mark(now_s, transactions, tuples)
        self._used.append(self._processor())
        return True

    def ends(self) -> tuple[Mark, Mark]:
        """Returns both ends.

        Raises:
            ValueError: the run ended before its time.
        """
        if self.begin is None or self.end is None:
            raise ValueError(
                f"the run ended after {self._committed} transactions, before there was anything to measure; "
                "give it more input, or measure for fewer seconds"
            )
        return self.begin, self.end

    def measurement(self, *, is_exact: bool, details: Mapping[str, Any] | None = None) -> Measurement:
        """Returns the rate in the span; a role that had no process at its beginning counts in full.

        Raises:
            ValueError: as `ends`.
        """
        begin, end = self.ends()
        before, after = self._used
        return Measurement(
            transactions=end.transactions - begin.transactions,
            tuples=end.tuples - begin.tuples,
            seconds=end.at_s - begin.at_s,
            is_exact=is_exact,
            processor_s={role: seconds - before.get(role, 0.0) for role, seconds in after.items()},
            details=details or {},
        )


@dataclass(frozen=True, slots=True)
class ArrivalSchedule:
    """Evenly spaced arrivals.

    Attributes:
        start_s: when the first transaction arrives, on the clock of the run.
        per_s: arrivals per second, greater than 0.
        count: how many arrive.
    """

    start_s: float
    per_s: float
    count: int

    def arrival_s(self, number: int) -> float:
        """Returns when the transaction of that number, from 0, arrives."""
        return self.start_s + number / self.per_s

    def arrived(self, now_s: float) -> int:
        """Returns how many have arrived."""
        if now_s < self.start_s:
            return 0
        return min(self.count, math.floor((now_s - self.start_s) * self.per_s + 1e-9) + 1)

    def latencies_s(self, committed_s: Sequence[float]) -> list[float]:
        """Returns the latency of every transaction, given when each was committed, in order.

        Raises:
            ValueError: not every transaction that arrived was committed; leaving some out would flatter.
        """
        if len(committed_s) != self.count:
            raise ValueError(f"{self.count} transactions arrived, {len(committed_s)} were committed")
        return [now_s - self.arrival_s(number) for number, now_s in enumerate(committed_s)]

    def measurement(
        self, committed_s: Sequence[float], tuples: int, *, is_exact: bool, details: Mapping[str, Any] | None = None
    ) -> Measurement:
        """Returns the latencies of transactions of `tuples` tuples, given when each was committed.

        Raises:
            ValueError: as `latencies_s`.
        """
        return Measurement(
            transactions=self.count,
            tuples=self.count * tuples,
            seconds=committed_s[-1] - self.start_s,
            is_exact=is_exact,
            latencies_ms=summarized_ms(self.latencies_s(committed_s)),
            details=details or {},
        )


def arrival_count(per_s: float, seconds: float) -> int:
    """Returns how many transactions arrive in that time, at least one."""
    return max(1, math.floor(per_s * seconds))


def summarized_ms(latencies_s: Sequence[float]) -> dict[str, float]:
    """Returns percentiles and the maximum, in milliseconds."""
    found = {f"p{percent}": 1000 * percentile(latencies_s, percent) for percent in PERCENTILES}
    return {**found, "max": 1000 * max(latencies_s)}
