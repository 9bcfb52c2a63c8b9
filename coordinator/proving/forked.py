"""Runs something in a copy of this process, so that nothing it leaves in modules or classes reaches what runs next.

What user code prints there is dropped, and so is what txbatch logs of faults that are meant to be. The copy and all
that it has started end with its original, however that ends, and when a call of user code takes longer than it may; if
that lets no other thread run, only when its time is up.
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
    """Returns what `run` returns, or raises what it raises; one call of user code may take that long.

    Raises:
        TransactionError: the copy has ended without either.
    """
    reading, writing = os.pipe()
    original, never_written = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: the copy uses none
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
            os.killpg(child, signal.SIGKILL)  # what user code has started and left running
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
    """The process that is the copy; ends without any clean-up of the original's.

    Args:
        writing: takes the answer.
        original: a pipe that ends with the original.
    """

    def __init__(self, writing: int, original: int, returns_within_s: float) -> None:
        self._writing, self._original, self._returns_within_s = writing, original, returns_within_s
        self._answering = threading.Lock()
        self._running = threading.get_ident()

    def answer(self, run: Callable[[], Any]) -> None:
        status = 1
        try:
            os.setpgid(0, 0)  # whatever it starts is ended with it
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
        self._answering.acquire()  # and never released: there is one answer
        with open(self._writing, "wb") as pipe:  # noqa: PTH123 - a descriptor
            pipe.write(packed)

    def _let_go(self) -> None:
        """Runs in processes that user code forks: the original waits for this one alone."""
        writing, self._writing = self._writing, -1
        if writing >= 0:
            os.close(writing)

    def _let_the_system_end_it(self) -> None:
        """Unless this is called again before its time is up, as `_watch` does as long as it gets its turn."""
        signal.setitimer(signal.ITIMER_REAL, self._returns_within_s)

    def _watch(self) -> None:
        """Ends the copy with its original, or with an error once a call has taken too long; a thread of its own."""
        ends = select.poll()
        ends.register(self._original)
        call, looks = None, 0
        try:
            while not ends.poll(LOOKED_AFTER_EVERY_S * 1_000):
                self._let_the_system_end_it()
                now, place = _users_call(sys._current_frames()[self._running])  # noqa: SLF001 - the only way to them
                looks = looks + 1 if now == call else 0
                call = now
                if call is not None and looks * LOOKED_AFTER_EVERY_S > self._returns_within_s:
                    sentence = f"the topology's code has not returned for {self._returns_within_s:g} s, at {place}"
                    self._send((TransactionError(sentence).about(Trouble.USER_CODE), None))
                    break
        finally:
            os.killpg(0, signal.SIGKILL)


def _users_call(frame: FrameType | None) -> tuple[tuple[FrameType, FrameType | None] | None, str]:
    """Returns the user's code that was called by ours, with its caller, and the line where the user's code is now.

    A generator has one frame for all its steps; each step has a caller of its own.
    """
    call, place = None, ""
    while frame is not None and frame.f_code is not _Copy.answer.__code__:
        if is_users(frame.f_code.co_filename):
            place = place or f"{frame.f_code.co_filename}:{frame.f_lineno}"
            call = (frame, frame.f_back)
        frame = frame.f_back
    return call, place
