"""Handles Ctrl-C and SIGTERM: the first signal drains a run, the second one stops it, and SIGTERM sets a deadline.

A person at the keyboard decides how long to wait. A service manager or scheduler that sends SIGTERM will send SIGKILL
in the end, so the run ends by itself before that, even if it hangs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from coordinator.operating.cli.exits import StoppedError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FIRST_SIGNAL = "finishing what is in flight; a second signal stops at once"
EARLY_SIGNAL = "stopping; the run has not begun"
TIME_IS_UP = "what is in flight did not finish in time; stopping"
SAY_TIMEOUT_S = 1.0
STOP_TIMEOUT_S = 30.0
DRAIN_SHARE = 2 / 3
"""The share of the timeout that a drain may take; the rest is for closing everything in order."""


def end_process(number: int) -> None:
    """Ends this process and its Java process at once, without closing anything."""
    # not imported: a process without Spark has no Java process, and an import may be what hangs
    end_java = getattr(sys.modules.get("coordinator.engines.spark.java.gateway"), "end_java", None)
    if end_java is not None:
        end_java()
    os._exit(128 + number)


class DrainOnSignal:
    """Handles the two signals during a run; used in the main thread.

    Before the run has begun, the first signal stops it. Afterwards the first signal drains it, and the second one
    stops it. A stop raises `StoppedError`, so that everything is closed in order. One more signal ends the process at
    once; even then, nothing that was committed is lost.

    A drain that SIGTERM began is stopped after two thirds of the timeout. A stop, by either signal, that takes longer
    than the last third ends the process at once.

    Args:
        say: shows the user what the signal does.
        stop_timeout_s: longest time from SIGTERM to the end of the process.
        end: ends the process at once.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        end: Callable[[int], None] = end_process,
    ) -> None:
        self._say = say
        self._drain_s, self._stop_s = stop_timeout_s * DRAIN_SHARE, stop_timeout_s * (1 - DRAIN_SHARE)
        self._end = end
        self._left = threading.Event()
        self._main = threading.main_thread().ident
        self._drain: Callable[[], None] | None = None
        self._has_begun = False
        self._previous: dict[int, Any] = {}
        self._saying: threading.Thread | None = None
        self.received: int | None = None

    def __enter__(self) -> Self:
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._left.set()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self._saying is not None:
            self._saying.join(SAY_TIMEOUT_S)

    def drain_by(self, drain: Callable[[], None]) -> None:
        """Lets the first signal call `drain`; called after Spark's start, which installs its own SIGINT handler."""
        self._drain, self._has_begun = drain, True
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        drain, self._drain = self._drain, None
        self.received = number
        if drain is not None:
            drain()
            self._say_aside(FIRST_SIGNAL)
            if number == signal.SIGTERM:
                threading.Thread(target=self._bound_drain, name="txbatch-bound-drain", daemon=True).start()
            return
        if not self._has_begun:
            self._say_aside(EARLY_SIGNAL)
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        threading.Thread(target=self._bound_stop, args=(number,), name="txbatch-bound-stop", daemon=True).start()
        raise StoppedError(number)

    def _say_aside(self, sentence: str) -> None:
        """Prints a sentence in a thread, because the signal may have interrupted the printing of a line."""
        self._saying = threading.Thread(target=self._say, args=(sentence,), daemon=True)
        self._saying.start()

    def _bound_drain(self) -> None:
        if not self._left.wait(self._drain_s) and signal.getsignal(signal.SIGTERM) == self._handle:
            self._say(TIME_IS_UP)
            assert self._main is not None
            signal.pthread_kill(self._main, signal.SIGTERM)  # wakes the main thread from any wait

    def _bound_stop(self, number: int) -> None:
        if not self._left.wait(self._stop_s):
            self._end(number)
