"""Attempt by attempt: what a run tells its driver, and which ends of phases it may be made to wait with."""

from __future__ import annotations

from collections.abc import Sequence

from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinator.transactional.engine import GroupExecuted
from coordinator.transactional.phase import Phase
from state.attempt import TransactionAttempt


class AttemptWatch:
    """Told by the coordinator what becomes of each attempt, on the run's thread; this one lets everything pass.

    A phase that is held has run, and its attempt waits as if the answer had not arrived. The engine ends it
    later, with a `PhaseEnded`.
    """

    def issued(self, attempt: TransactionAttempt) -> None:
        """An attempt was issued."""

    def committed(self, attempts: Sequence[TransactionAttempt]) -> None:
        """These attempts are durable."""

    def failed(self, attempts: Sequence[TransactionAttempt], phase: Phase, reason: str) -> None:
        """The first of these attempts has failed; the others are above it and were dropped with it."""

    def holds_processing(self, wave_id: int, outcome: AttemptOutcome) -> bool:
        """Asked once for each attempt whose processing phase went well: whether its ack has to wait."""
        return False

    def holds_commit(self, event: GroupExecuted) -> bool:
        """Asked whenever the commit phase of a group has run: whether its publication has to wait."""
        return False

    def commit_limit(self, currtx: int, limit: int) -> int:
        """Most transactions of a group that begins at `currtx`, from 1 to `limit`."""
        return limit
