"""Runs something in a copy of this process, so that nothing it leaves in modules or classes reaches what runs next.

What user code prints there is dropped, and so is what txbatch logs of faults that are meant to be.
"""

from __future__ import annotations

import logging
import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from state.errors import TransactionError
from state.troubles import Trouble

ResultT = TypeVar("ResultT")


def in_a_copy(run: Callable[[], ResultT]) -> ResultT:
    """Returns what `run` returns, or raises what it raises.

    Raises:
        TransactionError: the copy has ended without either.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: this one uses none
        child = os.fork()
    if child == 0:
        _answer(run, reading, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
        packed = pipe.read()
    _, status = os.waitpid(child, 0)
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


def _answer(run: Callable[[], Any], reading: int, writing: int) -> None:
    """Runs in the copy, and ends it without any clean-up of the original's."""
    status = 1
    try:
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for printed in (1, 2):
            os.dup2(nowhere, printed)
        logging.getLogger("txbatch").setLevel(logging.CRITICAL)
        try:
            answer: tuple[Exception | None, Any] = (None, run())
        except Exception as error:  # noqa: BLE001 - it is raised again in the original
            if not isinstance(error, TransactionError):
                error.add_note(f"raised in a copy of the process:\n{traceback.format_exc()}")
            answer = (error, None)
        packed = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        with open(writing, "wb") as pipe:
            pipe.write(packed)
        status = 0
    finally:
        os._exit(status)
