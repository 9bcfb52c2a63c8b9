"""Tells the cause of each failure, in the words of `FailureCause`, from what is heard of a run. Pure."""

from __future__ import annotations

from collections import Counter

from coordinator.transactional.engine import GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from coordinator.transactional.failure_cause import FailureCause
from coordinator.transactional.machine.run_events import Dropped, Refused, RunEvent
from state.attempt import TransactionAttempt

REFUSED, VOID, OTHER = FailureCause.STATE_REFUSED.words, FailureCause.LOWER_FAILED.words, "other"


class FailureKinds:
    """Tells the kind of each failure in a run, from the event that caused it."""

    def __init__(self) -> None:
        self._of_attempts: dict[TransactionAttempt, str] = {}
        self._of_all = OTHER

    def heard(self, event: RunEvent) -> None:
        """Notes what an event says of attempts; called before the machine handles it."""
        match event:
            case WaveProcessed(outcomes=outcomes):
                self._of_all = OTHER
                self._of_attempts = {
                    each.attempt: FailureCause.of_failure(each.failure.kind).words for each in outcomes if each.failure
                }
            case GroupExecuted(attempts=attempts, reports=reports):
                self._of_all, self._of_attempts = OTHER, {}
                for report in reports:
                    for attempt, verdict in zip(attempts, report.verdicts, strict=False):
                        if verdict.failure is not None:
                            self._of_attempts.setdefault(attempt, FailureCause.of_failure(verdict.failure.kind).words)
            case WaveCrashed(kind=kind) | GroupCrashed(kind=kind):
                self._of_all, self._of_attempts = FailureCause.of_crash(kind).words, {}
            case Refused():
                self._of_all, self._of_attempts = REFUSED, {}

    def of(self, dropped: Dropped) -> str:
        """Returns the kind of the failure for which attempts were dropped."""
        return self._of_attempts.get(dropped.attempts[0], self._of_all) if dropped.attempts else self._of_all


def count_dropped(counts: Counter[str], kind: str, started: int, *, is_first_started: bool) -> None:
    """Adds one failure of a kind, and the attempts above it that it made void.

    Args:
        counts: kind -> attempts.
        kind: of the failure.
        started: how many of the dropped attempts a wave had taken.
        is_first_started: whether the one at fault is among them.
    """
    if is_first_started:
        counts[kind] += 1
    if started > is_first_started:
        counts[VOID] += started - is_first_started
