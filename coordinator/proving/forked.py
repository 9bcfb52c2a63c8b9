"""Runs something in a copy of this process, so that nothing it leaves in modules or classes reaches what runs next.

What user code prints there is dropped, and so is what txbatch logs of faults that are meant to be. The copy ends with
its original, however that ends, and once user code does not return.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from select import select
from types import FrameType
from typing import Any, TypeVar

from coordinated_bolt.user_code import is_users
from state.errors import TransactionError
from state.troubles import Trouble

ResultT = TypeVar("ResultT")
Answer = tuple[Exception | None, Any]
RETURNS_WITHIN_S = 30.0
"""How long one call of user code may take; as long as a wave may by default."""
LOOKED_AFTER_EVERY_S = 1.0


def in_a_copy(run: Callable[[], ResultT]) -> ResultT:
    """Returns what `run` returns, or raises what it raises.

    Raises:
        TransactionError: the copy has ended without either.
    """
    reading, writing = os.pipe()
    original, never_written = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: this one uses none
        child = os.fork()
    if child == 0:
        for other_end in (reading, never_written):
            os.close(other_end)
        _answer(run, writing, original)
    for other_end in (writing, original):
        os.close(other_end)
    try:
        with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
            packed = pipe.read()
    except BaseException:
        os.kill(child, signal.SIGKILL)  # not left to itself: it may be in code that holds the interpreter
        raise
    finally:
        _, status = os.waitpid(child, 0)
        os.close(never_written)
    if not packed:
        how = f"signal {-code}" if (code := os.waitstatus_to_exitcode(status)) < 0 else f"code {code}"
        raise TransactionError(
            f"the topology's code has ended the process in which it ran, with {how}; a component may raise an "
            "exception, and may not end its process"
        ).about(Trouble.USER_CODE)
    error, result = pickle.loads(packed)
    if error is not None:
        raise error
    found: ResultT = result
    return found


def _answer(run: Callable[[], Any], writing: int, original: int) -> None:
    """Runs in the copy, and ends it without any clean-up of the original's."""
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for printed in (1, 2):
            os.dup2(nowhere, printed)
        logging.getLogger("txbatch").setLevel(logging.CRITICAL)
        threading.Thread(target=_watch, args=(threading.get_ident(), writing, original), daemon=True).start()
        try:
            answer: Answer = (None, run())
        except Exception as error:  # noqa: BLE001 - it is raised again in the original
            if not isinstance(error, TransactionError):
                error.add_note(f"raised in a copy of the process:\n{traceback.format_exc()}")
            answer = (error, None)
        _send(answer, writing)
        status = 0
    finally:
        os._exit(status)


def _send(answer: Answer, writing: int) -> None:
    packed = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    with open(writing, "wb") as pipe:
        pipe.write(packed)


def _watch(running: int, writing: int, original: int) -> None:
    """Ends the copy with its original, or with an error once a call has taken too long; a thread of its own."""
    call, since_s = None, 0.0
    while not select([original], [], [], LOOKED_AFTER_EVERY_S)[0]:
        outermost, place = _users_call(sys._current_frames()[running])  # noqa: SLF001 - the way to another thread
        if outermost is not call:
            call, since_s = outermost, time.monotonic()
        elif call is not None and time.monotonic() - since_s > RETURNS_WITHIN_S:
            sentence = f"the topology's code has not returned for {RETURNS_WITHIN_S:g} s, at {place}"
            _send((TransactionError(sentence).about(Trouble.USER_CODE), None), writing)
            break
    os._exit(1)


def _users_call(frame: FrameType | None) -> tuple[FrameType | None, str]:
    """Returns the frame of the user's code that was called by ours, and the line where the user's code is now."""
    call, place = None, ""
    while frame is not None and frame.f_code is not _answer.__code__:
        if is_users(frame.f_code.co_filename):
            place = place or f"{frame.f_code.co_filename}:{frame.f_lineno}"
            call = frame
        frame = frame.f_back
    return call, place
