"""Logs why transactions are replayed, in a bounded number of lines."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.bounded_log import BoundedLog
from coordinator.log_fields import fields
from coordinator.transactional.pulse.gist import TRACEBACK, gist
from state.attempt import TransactionAttempt


class ReplayLog:
    """Logs the first replay of a run at once, and later ones as `BoundedLog` allows.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._log = BoundedLog(clock)

    def failed(self, attempt: TransactionAttempt, reason: str, wave_id: int) -> None:
        """Logs or counts an attempt that has failed and whose transaction is replayed."""
        told = gist(reason) if TRACEBACK in reason else reason
        about = fields(attempt, wave=wave_id or None, reason=told)
        self._log.warn(f"attempt {attempt} failed and is replayed: {told}", about)

    def close(self) -> None:
        """Logs the number of replays left out, with the last reason; called at the end of the run."""
        self._log.close()
