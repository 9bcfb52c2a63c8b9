"""A run that is counted, with observations made by hand; attempts are named by txid."""

from __future__ import annotations

from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.watching.failure_cause import FailureCause
from coordinator.watching.run_observer import AttemptsFailed, GroupCommitted, WaveEnded, WaveStarted
from coordinator.watching.statistics.run_counter import RunCounter
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.attempt import Attempts, TransactionAttempt


class Counted:
    """Counts into these statistics, or new ones; each call first tells the time, in seconds."""

    def __init__(self, statistics: RunStatistics | None = None) -> None:
        self.statistics = statistics or RunStatistics()
        self._now_s = 0.0
        self._counter = RunCounter(self.statistics, lambda: self._now_s)

    def starts(self, now_s: float, *txids: int) -> None:
        self._now_s = now_s
        self._counter(WaveStarted(1, _attempts(txids)))

    def ends(self, now_s: float, *txids: int, measured_s: float = 0.0, **of_each: Any) -> None:
        self._now_s = now_s
        outcomes = tuple(AttemptResult(attempt, **of_each) for attempt in _attempts(txids))
        self._counter(WaveEnded(1, _attempts(txids), 0.5, outcomes, measured_s=measured_s))

    def fails(self, now_s: float, *txids: int) -> None:
        self._now_s = now_s
        self._counter(AttemptsFailed(_attempts(txids), "processing", FailureCause.ASKED_FOR, "asked for"))

    def commits(self, now_s: float, *txids: int, operation_count: int = 0, **more: Any) -> None:
        self._now_s = now_s
        self._counter(GroupCommitted(_attempts(txids), 0.1, operation_count, 100, **more))


def _attempts(txids: tuple[int, ...]) -> Attempts:
    return tuple(TransactionAttempt(txid, txid) for txid in txids)
