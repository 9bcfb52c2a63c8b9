"""Logs why transactions are replayed, in a bounded number of lines."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.watching.bounded_log import BoundedLog
from coordinator.watching.gist import TRACEBACK, gist
from coordinator.watching.log_fields import fields
from coordinator.watching.run_observer import AttemptRetried, Observation, RunEnded


class RetryLog:
    """Observes a run; logs its first replay at once, later ones as `BoundedLog` allows, at the end what was left out.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._log = BoundedLog(clock)

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.watching.run_observer`."""
        match observation:
            case AttemptRetried(attempt, reason, wave_id):
                told = gist(reason) if TRACEBACK in reason else reason
                about = fields(attempt, wave=wave_id or None, reason=told)
                self._log.warn(f"attempt {attempt} failed and is replayed: {told}", about)
            case RunEnded():
                self._log.close()
            case _:
                pass
