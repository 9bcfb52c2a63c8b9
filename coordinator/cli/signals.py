"""What Ctrl-C and SIGTERM do to a run: the first one drains it, the second one stops it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from coordinator.cli.exits import StoppedError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FIRST_SIGNAL = "finishing what is under way; once more stops at once"
SAY_TIMEOUT_S = 1.0


class DrainOnSignal:
    """Holds the two signals while a run lasts; used in the main thread.

    Before the run has begun the first signal stops. Then the first one drains and the second stops; both
    stop by `StoppedError`, so that everything is closed in order. One more ends the process as it stands:
    nothing that was committed is lost by that either.

    Args:
        say: tells the user what the signal does.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
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
            return
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        raise StoppedError(number)
