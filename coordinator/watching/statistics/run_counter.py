"""Counts a transactional run: its first observer, which keeps the statistics for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from committers.task_report import work_of
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.watching.metrics import REASON_COUNTER, TaskMetrics
from coordinator.watching.failure_cause import FailureCause
from coordinator.watching.run_observer import AttemptsFailed, GroupCommitted, Observation, WaveEnded, WaveStarted
from coordinator.watching.statistics.run_statistics import RunStatistics
from state.attempt import TransactionAttempt


class RunCounter:
    """Keeps `statistics` up to date; called on the coordinator's thread, with the run's clock."""

    def __init__(self, statistics: RunStatistics, clock: Callable[[], float]) -> None:
        self.statistics, self._clock = statistics, clock
        self._outcomes: dict[TransactionAttempt, AttemptResult | None] = {}  # in waves; None while processed

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case WaveStarted():
                self._started(observation)
            case WaveEnded():
                self._ended(observation)
            case AttemptsFailed():
                self._failed(observation)
            case GroupCommitted(is_set_aside=True):
                self._set_aside(observation.attempts[0].txid)
            case GroupCommitted():
                self._committed(observation)
            case _:
                pass

    def _started(self, wave: WaveStarted) -> None:
        figures, now_s = self.statistics, self._clock()
        self._outcomes |= dict.fromkeys(wave.attempts)
        figures.wave_started(now_s)
        if not figures.active:
            figures.busy_since_s = now_s
        figures.attempts += len(wave.attempts)

    def _ended(self, wave: WaveEnded) -> None:
        for outcome in wave.outcomes:
            if outcome.attempt in self._outcomes:
                self._outcomes[outcome.attempt] = outcome
            else:  # dropped meanwhile
                self._worked(outcome.metrics.items(), is_committed=False)
        if wave.crash is None:
            self.statistics.wave_ended(self._clock(), wave.measured_s, len(wave.attempts))
            self._moment()

    def _failed(self, failed: AttemptsFailed) -> None:
        """Counts failed attempts, except those that only waited for a wave."""
        figures = self.statistics
        self._worked(failed.worked, is_committed=False)
        for attempt in failed.attempts:
            if attempt in self._outcomes:
                figures.failed_attempts += 1
                cause = failed.cause if attempt == failed.attempts[0] else FailureCause.LOWER_FAILED
                figures.failures[str(cause)] += 1
                if (outcome := self._outcomes.pop(attempt)) is not None:
                    self._worked(outcome.metrics.items(), is_committed=False)

    def _set_aside(self, txid: int) -> None:
        self.statistics.last_txid = txid
        self.statistics.quarantined.append(txid)
        self._moment(is_result=True)

    def _committed(self, group: GroupCommitted) -> None:
        figures, count = self.statistics, len(group.attempts)
        for attempt in group.attempts:
            outcome = self._outcomes.pop(attempt)
            assert outcome is not None, "a transaction was committed while it was processed"
            figures.tuples += outcome.tuple_count
            if outcome.counters:
                figures.bad_records.add(outcome)
                self._count(outcome.counters)
            self._worked(outcome.metrics.items(), is_committed=True)
        figures.last_txid = group.attempts[-1].txid
        figures.committed += count
        figures.commit_groups += 1
        figures.changes += group.operation_count
        figures.dead_letters += group.letter_count
        figures.expired_parts += group.expired_count
        figures.republished_letters += group.republished_letters
        if group.republished_txid:
            figures.republished[group.republished_txid] = figures.last_txid
        for report in group.reports:
            for place, counters in report.results.counters.items():
                if place < count:
                    self._count(counters)
        self._worked(work_of(group.reports, slice(count)), is_committed=True)
        self._moment(is_result=True)

    def _moment(self, *, is_result: bool = False) -> None:
        figures, now_s = self.statistics, self._clock()
        if is_result:
            figures.last_result_s = now_s
        figures.moment(now_s, figures.committed, figures.failed_attempts)

    def _count(self, counters: Mapping[str, int]) -> None:
        """Adds users' counters; counters of reasons belong to the bad records."""
        for name, count in counters.items():
            if not name.startswith(REASON_COUNTER):
                self.statistics.counters[name] += count

    def _worked(self, reports: Iterable[tuple[str, TaskMetrics]], *, is_committed: bool) -> None:
        """Counts the components' work on an attempt that was committed, or failed."""
        for component_id, work in reports:
            self.statistics.component(component_id).add(work, is_committed=is_committed)
