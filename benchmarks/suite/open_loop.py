"""Latency as somebody who waits sees it: transactions arrive at times fixed beforehand, whatever the system does.

A loop that sends the next transaction once the last one is done measures nothing while the system stalls: the
transactions that should have arrived meanwhile are left out (*coordinated omission*). Here each has its arrival, and
its latency counts from there, though the system may look at it much later. Pure: the clock is a parameter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness import percentile

PERCENTILES = (50, 90, 99)


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


def arrival_count(per_s: float, seconds: float) -> int:
    """Returns how many transactions arrive in that time, at least one."""
    return max(1, math.floor(per_s * seconds))


def summarized_ms(latencies_s: Sequence[float]) -> dict[str, float]:
    """Returns percentiles and the maximum, in milliseconds."""
    found = {f"p{percent}": 1000 * percentile(latencies_s, percent) for percent in PERCENTILES}
    return {**found, "max": 1000 * max(latencies_s)}
