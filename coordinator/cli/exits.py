"""What the process exits with, and the sentence it leaves on standard error."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum

from coordinator.cli.logs import without
from state.errors import EngineError, FencedError, Interruption, StateError, TopologyError, TransactionError
from state.printable import SENTENCE_LIMIT, block, said_by

WHOLE = {"line_limit": 100_000, "lines_max": 10_000}
"""Of a traceback that was asked for nothing is left out that anybody would read."""


class ExitCode(IntEnum):
    """The exit codes; a run that a signal stopped exits with 128 and the signal's number."""

    DONE = 0
    JOB_FAILED = 1
    USAGE = 2
    """Wrong arguments, or a topology that could not run correctly; nothing was started."""
    FENCED = 3
    """A newer run took over, or the topology was dropped: do not restart."""
    STATE = 4
    ENGINE = 5
    """Spark is gone or cannot work; nothing is wrong with the topology or its state: mend that, run again."""


class StoppedError(Interruption):
    """A signal asked the process to stop at once.

    Attributes:
        signal_number: the signal.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


def exit_code_of(error: BaseException) -> int:
    """What a process exits with that ended by `error`."""
    if isinstance(error, StoppedError):
        return 128 + error.signal_number
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, FencedError):
        return ExitCode.FENCED
    if isinstance(error, StateError):
        return ExitCode.STATE
    if isinstance(error, EngineError):
        return ExitCode.ENGINE
    if isinstance(error, TopologyError):
        return ExitCode.USAGE
    return ExitCode.JOB_FAILED


def sentence_of(error: BaseException) -> str:
    """What is said of an error to somebody who did not ask for a traceback."""
    if isinstance(error, TransactionError):
        return str(error)
    if isinstance(error, (StoppedError, KeyboardInterrupt)):
        return "stopped; run again to go on after the last commit"
    return f"{type(error).__name__}: {said_by(error)}\nthis was not expected; --debug shows where it was raised"


@contextmanager
def errors_reported(*, debug: bool = False, hidden: Mapping[str, str] | None = None) -> Iterator[None]:
    """Turns whatever the block raises into a sentence on standard error and an exit code.

    Args:
        debug: print the whole traceback before the sentence.
        hidden: text that is never to be printed, as a password -> what is printed in its place.

    Raises:
        SystemExit: always, if the block raises.
    """
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - the last one who can say it, also for a user's sys.exit
        text = block("".join(traceback.format_exception(error)), **WHOLE) if debug else ""
        said = block(sentence_of(error), line_limit=SENTENCE_LIMIT)
        text += "txbatch: " + said.replace("\ntxbatch:", "\n  txbatch:")  # a user's message is not taken for ours
        print(without(hidden or {}, text), file=sys.stderr)
        raise SystemExit(int(exit_code_of(error))) from None
