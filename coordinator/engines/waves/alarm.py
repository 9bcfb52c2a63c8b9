"""Interrupts user code that overruns its timeout, so that the traceback names the line.

The driver cancels what exceeds the message timeout, but it does not know what a worker is doing. So a worker has an
alarm of its own, a little earlier: it raises in the middle of the user's code, and the traceback shows the line. The
driver leaves it the time to arrive.
Code that lets no signal through, as a long call into C does, is left to the driver.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.errors import Interruption

WORKER_START_S = 3.0
"""How long a worker takes at most to start and import, on a machine that has other work."""
MESSAGE_TIMEOUT = "the message timeout"


class OverdueError(Interruption):
    """User code had not returned when the message timeout ran out; the driver reads the story."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """By when a job has to be done.

    Attributes:
        started_s: when it was started, by the driver's clock since 1970.
        timeout_s: how long it may take.
        limit: the name of that limit.
    """

    started_s: float
    timeout_s: float
    limit: str = MESSAGE_TIMEOUT

    def seconds_left(self, now_s: float) -> float:
        """Seconds until the alarm.

        What earlier stages of the job have used is taken off, up to half the timeout, and so is what a worker may take
        to start, which is more than half of a short one. Anything longer was waiting for executors, a first try of
        the task, or a clock that differs from the driver's, who watches over the whole.

        Args:
            now_s: the worker's clock.
        """
        timeout_s = self.timeout_s - min(2.0, self.timeout_s / 10)
        used_s = max(0.0, now_s - self.started_s)
        half_s = timeout_s / 2
        return max(timeout_s - used_s, half_s) if used_s <= max(half_s, WORKER_START_S) else timeout_s


class Alarm:
    """The alarm of one Spark task.

    Args:
        wiring: the task of the topology; the first of several.
        timeout_s: how long it may take.
        limit: the name of that limit.
    """

    def __init__(self, wiring: TaskWiring, timeout_s: float, limit: str = MESSAGE_TIMEOUT) -> None:
        self._wiring, self._own_wiring = wiring, wiring
        self._time = f"{limit} of {timeout_s:g} s"
        self._attempt: TransactionAttempt | None = None

    def begin(self, attempt: TransactionAttempt | None, chained: TaskWiring | None = None) -> None:
        """The task, or one chained to it, begins to work on an attempt; in a plain topology there is none."""
        self._attempt, self._wiring = attempt, chained or self._own_wiring

    def through(self, wirings: Iterable[TaskWiring]) -> Iterator[TaskWiring]:
        """Gives one task of the topology after the other, which run in the same Spark task, and rings for each."""
        for wiring in wirings:
            self._attempt, self._wiring, self._own_wiring = None, wiring, wiring
            yield wiring

    def ring(self, _number: int, _frame: FrameType | None) -> None:
        """Raises in whatever runs."""
        where = f"component {self._wiring.component_id!r}, task {self._wiring.task_index}"
        where += f", attempt {self._attempt}" if self._attempt is not None else ""
        raise OverdueError(f"{where} had not returned when {self._time} ran out")


@contextmanager
def alarm_for(wiring: TaskWiring, deadline: Deadline | None) -> Iterator[Alarm]:
    """Sets the alarm of a task while the block runs, on the main thread (executor, or a driver that has none).

    A timer that the program has set itself rings when it would have: one that is due sooner stays, and the task has no
    alarm; any other is set again afterwards.

    Raises:
        OverdueError: at any point of the block.
    """
    alarm = Alarm(wiring, 0.0) if deadline is None else Alarm(wiring, deadline.timeout_s, deadline.limit)
    if deadline is None or threading.current_thread() is not threading.main_thread():
        yield alarm
        return
    most_s, (theirs_s, every_s) = deadline.seconds_left(time.time()), signal.getitimer(signal.ITIMER_REAL)
    if 0 < theirs_s <= most_s:
        yield alarm
        return
    began_s, before = time.monotonic(), signal.signal(signal.SIGALRM, alarm.ring)
    signal.setitimer(signal.ITIMER_REAL, most_s)
    try:
        yield alarm
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if theirs_s:
            left_s = max(theirs_s - (time.monotonic() - began_s), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
