"""Interrupts user code that exceeds its timeout, so that the traceback names the line.

The driver cancels a job that exceeds the message timeout, but it does not know what a worker is doing. So a worker has
an alarm of its own, which rings a little earlier: it raises an error in the middle of the user's code, whose traceback
shows the line. The driver leaves that error time to arrive. Code that lets no signal through, such as a long call into
C, is left to the driver.
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
"""The longest time a worker takes to start and import, on a busy machine."""
MESSAGE_TIMEOUT = "the message timeout"


class OverdueError(Interruption):
    """User code had not returned when the message timeout ran out; the driver reads the message."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time by which a job has to be done.

    Attributes:
        started_s: when it was started, in seconds since 1970 by the driver's clock.
        timeout_s: how long it may take.
        limit: the name of that timeout.
    """

    started_s: float
    timeout_s: float
    limit: str = MESSAGE_TIMEOUT

    def seconds_left(self, now_s: float) -> float:
        """Returns the seconds until the alarm.

        The time used so far is subtracted, half the timeout at most: earlier stages needed it, or the start of a
        worker, which may take longer than half of a short timeout. Anything longer is ignored: it was a wait for
        executors, a first try of the task, or a difference between the clocks. The driver watches the job as a whole.

        Args:
            now_s: the time by the worker's clock.
        """
        timeout_s = self.timeout_s - min(2.0, self.timeout_s / 10)
        used_s = max(0.0, now_s - self.started_s)
        half_s = timeout_s / 2
        return max(timeout_s - used_s, half_s) if used_s <= max(half_s, WORKER_START_S) else timeout_s


class Alarm:
    """The alarm of one Spark task.

    Args:
        wiring: the task of the topology, or the first of several.
        timeout_s: how long it may take.
        limit: the name of that timeout.
    """

    def __init__(self, wiring: TaskWiring, timeout_s: float, limit: str = MESSAGE_TIMEOUT) -> None:
        self._wiring, self._own_wiring = wiring, wiring
        self._time = f"{limit} of {timeout_s:g} s"
        self._attempt: TransactionAttempt | None = None

    def begin(self, attempt: TransactionAttempt | None, chained: TaskWiring | None = None) -> None:
        """Notes that the task, or one chained to it, begins to work on an attempt; on None in a plain topology."""
        self._attempt, self._wiring = attempt, chained or self._own_wiring

    def through(self, wirings: Iterable[TaskWiring]) -> Iterator[TaskWiring]:
        """Yields the tasks of the topology that run in one Spark task; the alarm names the one yielded last."""
        for wiring in wirings:
            self._attempt, self._wiring, self._own_wiring = None, wiring, wiring
            yield wiring

    def ring(self, _number: int, _frame: FrameType | None) -> None:
        """Raises the error in whatever code runs."""
        where = f"component {self._wiring.component_id!r}, task {self._wiring.task_index}"
        where += f", attempt {self._attempt}" if self._attempt is not None else ""
        raise OverdueError(f"{where} had not returned when {self._time} ran out")


@contextmanager
def alarm_for(wiring: TaskWiring, deadline: Deadline | None) -> Iterator[Alarm]:
    """Sets the alarm of a task while the block runs, on the main thread (executor, or a driver that has none).

    A timer that the program itself has set is respected: if it is due sooner, it stays, and the task has no alarm;
    otherwise it is set again afterwards.

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
