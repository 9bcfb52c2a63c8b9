"""Exit codes, and the sentence on standard error that explains an error."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum

from coordinator.operating.cli.standard_streams import READER_GONE, is_without_reader
from coordinator.operating.cli.terminal import say, without
from state.errors import EngineError, FencedError, Interruption, StateError, TopologyError, TransactionError
from state.printable import SENTENCE_LIMIT, block, message_of
from state.troubles import Trouble

WHOLE = {"line_limit": 100_000, "lines_max": 10_000}
"""Limits of a traceback that was asked for, large enough to show all of it."""
LONG, FIRST_LINE = 300, 120
"""The length from which a message gets several lines, and the length of its first line, if it can be cut."""


class ExitCode(IntEnum):
    """The exit codes; a run that a signal stopped exits with 128 plus the number of the signal.

    A command whose output has lost its reader exits like one that SIGPIPE stopped: see `READER_GONE`.
    """

    DONE = 0
    JOB_FAILED = 1
    USAGE = 2
    """Wrong arguments, or a topology that cannot run correctly; nothing was started."""
    FENCED = 3
    """A newer run took over, or the topology was dropped: do not restart."""
    STATE = 4
    """The state was refused or is unreachable, or `txbatch verify` found damage."""
    ENGINE = 5
    """Spark failed or is gone, while topology and state are fine: repair Spark, then run again."""


class StoppedError(Interruption):
    """A signal asked a run to stop at once."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


def exit_code_of(error: BaseException) -> int:
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
    """Returns the message for an error without ``--debug``."""
    if isinstance(error, TransactionError):
        return str(error)
    if isinstance(error, StoppedError):
        return "stopped; run again to continue after the last commit"
    if isinstance(error, KeyboardInterrupt):
        return "stopped"
    if _is_full_disk(error):
        return f"standard output or a temporary file cannot be written: {message_of(error)}; make room and try again"
    return f"{type(error).__name__}: {message_of(error)}\nthis error is unexpected; --debug shows where it was raised"


def laid_out(sentence: str) -> str:
    """Splits a long message: what happened and what to do in the first line, and each further clause below."""
    if len(sentence) <= LONG or "\n" in sentence:
        return sentence
    first, *clauses = sentence.split("; ")
    while clauses and len(first) + len(clauses[0]) < FIRST_LINE:
        first = f"{first}; {clauses.pop(0)}"
    return "\n  ".join((first, *clauses))


def pointer_of(error: BaseException) -> str:
    """Returns the last line of a message, which names the entry that explains it; "" if none is needed."""
    if isinstance(error, (StoppedError, KeyboardInterrupt)) or _is_full_disk(error):
        return ""
    trouble = error.trouble if isinstance(error, TransactionError) else Trouble.UNEXPECTED
    return f"\n`{trouble.command}` says more"


def _is_full_disk(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT) and error.filename is None


@contextmanager
def errors_reported(
    *,
    debug: bool = False,
    hidden: Mapping[str, str] | None = None,
    completed: Callable[[str], str] = str,
    report: Callable[[str, BaseException], None] | None = None,
) -> Iterator[None]:
    """Turns any exception of the block into a sentence on standard error and an exit code.

    No sentence is printed if the reader of the output has gone, as in ``txbatch state get words counts | head``.

    Args:
        debug: print the whole traceback before the sentence.
        hidden: text that must never be printed, such as a password -> its replacement.
        completed: completes the commands that a message suggests; see `ServerOptions.completed`.
        report: called with the sentence and the error, in place of printing.

    Raises:
        SystemExit: always, if the block raises.
    """
    try:
        yield
    except BaseException as error:  # noqa: BLE001 - the last place to report it, even a user's sys.exit
        if is_without_reader(error):
            raise SystemExit(READER_GONE) from None
        sentence = sentence_of(error) if report is not None else laid_out(sentence_of(error))
        said = completed(block(sentence, line_limit=SENTENCE_LIMIT)) + pointer_of(error)
        if report is not None:
            report(said, error)
            raise SystemExit(int(exit_code_of(error))) from None
        text = block("".join(traceback.format_exception(error)), **WHOLE) if debug else ""
        text += "txbatch: " + said.replace("\ntxbatch:", "\n  txbatch:")  # a user's message must not pass for ours
        with suppress(BrokenPipeError):  # the exit code remains
            say(*without(hidden or {}, text).split("\n"), to=sys.stderr)
        raise SystemExit(int(exit_code_of(error))) from None
