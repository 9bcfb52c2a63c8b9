"""Ends a refold whose source has nothing more: with a source without an end it would wait for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

LOOK_EVERY_S = 1.0
STALL_MIN_S = 60.0
TIMEOUTS_WAITED = 3
"""Message timeouts without a commit before the source is taken to be empty: an attempt may fail, and be tried again."""


class Drainable(Protocol):
    """The part of a `Coordinator` that is used here."""

    @property
    def statistics(self) -> Any:
        """The figures of the run so far."""

    def drain(self) -> None:
        """Ends the run once what is in flight is committed."""


def stall_after_s(message_timeout_s: float) -> float:
    """Returns how long a refold may commit nothing, in seconds."""
    return max(STALL_MIN_S, TIMEOUTS_WAITED * message_timeout_s)


class StallWatch:
    """Watches one run from a thread of its own, and drains it once it has committed nothing for too long.

    Args:
        stall_s: how long that is, in seconds.
        clock: monotonic, in seconds.
    """

    def __init__(self, stall_s: float, clock: Callable[[], float]) -> None:
        self._stall_s, self._clock = stall_s, clock
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._run: Drainable | None = None
        self._seen, self._since_s = -1, 0.0

    def begin(self, run: Drainable) -> None:
        """Called once, when the run has started."""
        self._run, self._since_s = run, self._clock()
        self._thread = threading.Thread(target=self._watch, name="txbatch-refold-stall", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Looks once; drains the run if it has stalled."""
        assert self._run is not None
        committed = self._run.statistics.last_txid
        if committed != self._seen:
            self._seen, self._since_s = committed, self._clock()
        elif self._clock() - self._since_s >= self._stall_s:
            self._run.drain()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.look()
