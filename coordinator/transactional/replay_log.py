"""Logs why transactions are replayed, in a bounded number of lines."""

from __future__ import annotations

import logging
from collections.abc import Callable

from state.attempt import TransactionAttempt

_LOG = logging.getLogger("txbatch")
EVERY_S = 5.0


class ReplayLog:
    """Logs the first replay of a run at once, then at most one in five seconds, with the number left out.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next_s = clock()
        self._left_out = 0
        self._last = ""

    def failed(self, attempt: TransactionAttempt, reason: str) -> None:
        """Logs or counts an attempt that has failed and whose transaction is replayed."""
        self._last = f"attempt {attempt} failed and is replayed: {reason}"
        if self._clock() < self._next_s:
            self._left_out += 1
            return
        self._next_s = self._clock() + EVERY_S
        self._say()

    def close(self) -> None:
        """Logs the number of replays left out, with the last reason; called at the end of the run."""
        if self._left_out:
            self._left_out -= 1
            self._say()

    def _say(self) -> None:
        more = f" ({self._left_out:,} more before it)" if self._left_out else ""
        _LOG.warning("%s%s", self._last, more)
        self._left_out = 0
