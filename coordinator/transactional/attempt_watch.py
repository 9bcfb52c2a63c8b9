"""Watches a run attempt by attempt, and may hold the end of a phase."""

from __future__ import annotations

from collections.abc import Sequence

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.engine import GroupExecuted
from coordinator.transactional.phase import Phase
from state.attempt import TransactionAttempt


class AttemptWatch:
    """Notified by the coordinator of what becomes of each attempt, on the run's thread; this one never holds a phase.

    A phase that is held has run, but its attempt waits as if the answer had not arrived. The engine ends it later
    with a `PhaseEnded`.
    """

    def issued(self, attempt: TransactionAttempt) -> None:
        """Called when an attempt was issued."""

    def committed(self, attempts: Sequence[TransactionAttempt]) -> None:
        """Called when these attempts are durable."""

    def failed(self, attempts: Sequence[TransactionAttempt], phase: Phase, reason: str) -> None:
        """Called when the first of these attempts has failed; the others are above it and were dropped with it."""

    def holds_processing(self, wave_id: int, outcome: AttemptResult) -> bool:
        """Returns whether to hold an ack; called once for each attempt whose processing phase succeeded."""
        return False

    def holds_commit(self, event: GroupExecuted) -> bool:
        """Returns whether to hold a publication; called whenever the commit phase of a group has run."""
        return False

    def commit_limit(self, currtx: int, limit: int) -> int:
        """Returns the most transactions of a group that begins at `currtx`, from 1 to `limit`."""
        return limit
