"""Runs a function in a copy of this process, so that nothing it leaves in modules or classes reaches the next run.

Output of user code is dropped, and so are the logs of faults that a schedule causes. The copy and every process that it
has started end when the original ends, however that happens. They also end when a call of user code takes too long: by
a thread that watches, or by a signal if the call lets no other thread run.
"""

from __future__ import annotations

import logging
import os
import pickle
import select
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from coordinated_bolt.user_code import is_users
from coordinator.topology.building.topology import DEFAULT_MESSAGE_TIMEOUT_S
from state.errors import TransactionError
from state.troubles import Trouble

ResultT = TypeVar("ResultT")
Answer = tuple[Exception | None, Any]
LOOKED_AFTER_EVERY_S = 1.0


def in_a_copy(run: Callable[[], ResultT], *, returns_within_s: float = DEFAULT_MESSAGE_TIMEOUT_S) -> ResultT:
    """Calls `run` in a copy, and returns its result or raises its error; each call of user code has a time limit.

    Raises:
        TransactionError: the copy has ended without a result or an error.
    """
    reading, writing = os.pipe()
    original, never_written = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads: the copy uses none of them
        child = os.fork()
    if child == 0:
        for other_end in (reading, never_written):
            os.close(other_end)
        _Copy(writing, original, returns_within_s).answer(run)
    for other_end in (writing, original):
        os.close(other_end)
    try:
        with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
            packed = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # processes that user code has started and left running
        os.close(never_written)
    if not packed:
        raise TransactionError(_end_of(os.waitstatus_to_exitcode(status), returns_within_s)).about(Trouble.USER_CODE)
    error, result = pickle.loads(packed)
    if error is not None:
        raise error
    found: ResultT = result
    return found


def _end_of(code: int, limit_s: float) -> str:
    if code == -signal.SIGALRM:
        return f"the topology's code has not returned for {limit_s:g} s, and has let no other thread run meanwhile"
    how = f"signal {-code}" if code < 0 else f"code {code}"
    return (
        f"the topology's code has ended the process in which it ran, with {how}; a component may raise an exception, "
        "and may not end its process"
    )


class _Copy:
    """The copy of the process; it ends without the original's clean-up.

    Args:
        writing: descriptor that the answer is written to.
        original: descriptor of a pipe that closes when the original ends.
    """

    def __init__(self, writing: int, original: int, returns_within_s: float) -> None:
        self._writing, self._original, self._returns_within_s = writing, original, returns_within_s
        self._answering = threading.Lock()
        self._running = threading.get_ident()

    def answer(self, run: Callable[[], Any]) -> None:
        status = 1
        try:
            os.setpgid(0, 0)  # the processes it starts are ended with it
            os.register_at_fork(after_in_child=self._let_go)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nowhere, standard)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._let_the_system_end_it()
            logging.getLogger("txbatch").setLevel(logging.CRITICAL)
            warnings.filterwarnings("ignore", ".* is multi-threaded", DeprecationWarning)
            try:
                threading.Thread(target=self._watch, daemon=True).start()
                answer: Answer = (None, run())
            except Exception as error:  # noqa: BLE001 - it is raised again in the original
                if not isinstance(error, TransactionError):
                    error.add_note(f"raised in a copy of the process:\n{traceback.format_exc()}")
                answer = (error, None)
            self._send(answer)
            status = 0
        finally:
            os._exit(status)

    def _send(self, answer: Answer) -> None:
        packed = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        self._answering.acquire()  # never released: there is one answer
        with open(self._writing, "wb") as pipe:  # noqa: PTH123 - a descriptor
            pipe.write(packed)

    def _let_go(self) -> None:
        """Closes the answer's descriptor in processes that user code forks: the original waits only for the copy."""
        writing, self._writing = self._writing, -1
        if writing >= 0:
            os.close(writing)

    def _let_the_system_end_it(self) -> None:
        """Sets the alarm that ends the process, unless `_watch` sets it again in time."""
        signal.setitimer(signal.ITIMER_REAL, self._returns_within_s)

    def _watch(self) -> None:
        """Ends the copy when its original ends, or with an error once a call takes too long (in its own thread)."""
        ends = select.poll()
        ends.register(self._original)
        call, looks = None, 0
        try:
            while not ends.poll(LOOKED_AFTER_EVERY_S * 1_000):
                self._let_the_system_end_it()
                now, place = _users_call(sys._current_frames()[self._running])  # noqa: SLF001 - the only way to frames
                looks = looks + 1 if now == call else 0
                call = now
                if call is not None and looks * LOOKED_AFTER_EVERY_S > self._returns_within_s:
                    sentence = f"the topology's code has not returned for {self._returns_within_s:g} s, at {place}"
                    self._send((TransactionError(sentence).about(Trouble.USER_CODE), None))
                    break
        finally:
            os.killpg(0, signal.SIGKILL)


def _users_call(frame: FrameType | None) -> tuple[tuple[FrameType, FrameType | None] | None, str]:
    """Returns the frame of user code that our code has called, with its caller's frame, and the line that runs now.

    All steps of a generator have one frame, but each step has its own caller's frame.
    """
    call, place = None, ""
    while frame is not None and frame.f_code is not _Copy.answer.__code__:
        if is_users(frame.f_code.co_filename):
            place = place or f"{frame.f_code.co_filename}:{frame.f_lineno}"
            call = (frame, frame.f_back)
        frame = frame.f_back
    return call, place
