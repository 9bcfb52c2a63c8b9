"""Notifies the watch of what becomes of a run's attempts, and asks it whether a phase may end."""

from __future__ import annotations

from coordinator.transactional.attempt_watch import AttemptWatch
from coordinator.transactional.engine import GroupExecuted, PhaseEnded
from coordinator.transactional.machine.run_events import AskWatch, Dropped, Issued
from state.attempt import TransactionAttempt


class WatchSide:
    """The watch of one run.

    Args:
        watch: notified of every attempt, and may hold its phases.
    """

    def __init__(self, watch: AttemptWatch) -> None:
        self._watch = watch

    def commit_limit(self, currtx: int, limit: int) -> int:
        """Returns the most transactions of the group that begins at `currtx`."""
        return self._watch.commit_limit(currtx, limit)

    def notify(self, decision: Issued | Dropped) -> None:
        """Passes on what has become of attempts."""
        match decision:
            case Issued(attempts):
                for attempt in attempts:
                    self._watch.issued(attempt)
            case Dropped(attempts, phase, reason, _):
                self._watch.failed(attempts, phase, reason)

    def committed(self, attempts: tuple[TransactionAttempt, ...]) -> None:
        """Passes on that these attempts are durable."""
        self._watch.committed(attempts)

    def ask(self, asked: AskWatch) -> PhaseEnded | None:
        """Asks whether a phase may end; returns None if it is held."""
        ended = asked.ended
        if isinstance(ended, GroupExecuted):
            is_held, attempt = self._watch.holds_commit(ended), ended.attempts[0]
        else:
            is_held, attempt = self._watch.holds_processing(asked.wave_id, ended), ended.attempt
        return None if is_held else PhaseEnded(attempt, ended, asked.wave_id)
