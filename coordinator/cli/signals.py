"""What Ctrl-C and SIGTERM do to a run: the first one drains it, the second one stops it, and SIGTERM has its time.

A person at Ctrl-C decides how long to wait. The sender of SIGTERM, a service manager or a scheduler, is
going to send SIGKILL in the end, so the run ends by itself before that, whatever it hangs on.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from coordinator.cli.exits import StoppedError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FIRST_SIGNAL = "finishing what is under way; once more stops at once"
TIME_IS_UP = "the time for that is up; stopping"
SAY_TIMEOUT_S = 1.0
STOP_TIMEOUT_S = 30.0
DRAIN_SHARE = 2 / 3
"""So much of the time a drain may take; the rest is for closing everything in order."""


def end_process(number: int) -> None:
    """Ends this process and its Java process as they stand."""
    # not imported: without Spark there is no Java process, and an import may be what this process hangs on
    end_java = getattr(sys.modules.get("coordinator.spark.gateway"), "end_java", None)
    if end_java is not None:
        end_java()
    os._exit(128 + number)


class DrainOnSignal:
    """Holds the two signals while a run lasts; used in the main thread.

    Before the run has begun the first signal stops. Then the first one drains and the second stops; both
    stop by `StoppedError`, so that everything is closed in order. One more ends the process as it stands:
    nothing that was committed is lost by that either.

    A drain that SIGTERM began is stopped when two thirds of the time are up. A stop that does not come to an end
    in the last third, whichever signal asked for it, ends the process as it stands.

    Args:
        say: tells the user what the signal does.
        stop_timeout_s: the longest time from SIGTERM to the end of the process.
        end: ends the process as it stands.
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
        """The run has begun; called after Spark's start, which puts a SIGINT handler of its own."""
        self._drain = drain
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        drain, self._drain = self._drain, None
        self.received = number
        if drain is not None:
            drain()
            # in a thread: the signal may have come in the middle of a line that is being written
            self._saying = threading.Thread(target=self._say, args=(FIRST_SIGNAL,), daemon=True)
            self._saying.start()
            if number == signal.SIGTERM:
                threading.Thread(target=self._bound_drain, name="txbatch-bound-drain", daemon=True).start()
            return
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        threading.Thread(target=self._bound_stop, args=(number,), name="txbatch-bound-stop", daemon=True).start()
        raise StoppedError(number)

    def _bound_drain(self) -> None:
        if not self._left.wait(self._drain_s) and signal.getsignal(signal.SIGTERM) == self._handle:
            self._say(TIME_IS_UP)
            assert self._main is not None
            signal.pthread_kill(self._main, signal.SIGTERM)  # so that the main thread wakes up, whatever it waits for

    def _bound_stop(self, number: int) -> None:
        if not self._left.wait(self._stop_s):
            self._end(number)
