"""Standard output and error as the command finds them: closed, not in UTF-8, on a full disk, or a pipe nobody reads.

`txbatch state get words counts | head` should end like `cat counts | head`: without a word, as if by SIGPIPE. That
signal itself is of no use, because it would also end a run whose server closes a connection.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from coordinator.operating.cli.terminal import say

READER_GONE = 128 + signal.SIGPIPE
"""The exit code of a command whose output is no longer read: the one that shells show for SIGPIPE."""
UNWRITTEN = 1
AS_JSON = "txbatch as JSON"
"""The name under which codecs know what to do with characters that an encoding lacks."""


def prepare_streams() -> None:
    """Makes all three streams such that anything can be printed; called once, before anything is opened.

    In place of each one that is closed, /dev/null is opened: a file or socket would otherwise take its number, and
    whatever child processes print would end in it. What the encoding of the others lacks is escaped as JSON does, so
    that JSON stays JSON.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")
    codecs.register_error(AS_JSON, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=AS_JSON)
    if type(sys.stderr) is io.TextIOWrapper and _number_of(sys.stderr) == 2:
        raw = io.BufferedWriter(_Dispensable(2, "w", closefd=False))
        sys.stderr = io.TextIOWrapper(raw, sys.stderr.encoding, AS_JSON, line_buffering=True)


class _Dispensable(io.FileIO):
    """Standard error on a disk that may be full or broken: what it does not take is lost, and the run continues."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)), error.end


def is_without_reader(error: BaseException) -> bool:
    """Returns whether an error says that nobody reads what the command prints; a socket may break in the same way."""
    return isinstance(error, BrokenPipeError) and any(map(_has_lost_reader, (sys.stdout, sys.stderr)))


def code_after_output(code: int, stdout: TextIO) -> int:
    """Writes what is still buffered, and returns the exit code; called once, last in the process.

    A command that has failed keeps its code. One that has printed in vain ends with `READER_GONE`, or, if standard
    output cannot be written, with 1 and a sentence on standard error.

    Args:
        code: of the command.
        stdout: standard output as it was when the command began; the command line's library replaces one that broke.
    """
    try:
        stdout.flush()
    except BrokenPipeError:
        code = code or READER_GONE
    except OSError as error:
        with suppress(OSError):
            say(
                f"txbatch: standard output cannot be written: {error.strerror}; what it holds is not all", to=sys.stderr
            )
        code = code or UNWRITTEN
    if sys.stdout is not stdout and _has_lost_reader(stdout):
        code = READER_GONE
    for stream in (stdout, sys.stderr):
        _forget(stream)
    return code


def _has_lost_reader(stream: TextIO) -> bool:
    number = _number_of(stream)
    if number is None:
        return False
    asked = select.poll()
    asked.register(number, 0)
    return any(events & select.POLLERR for _, events in asked.poll(0))


def _forget(stream: TextIO) -> None:
    """Lets a stream that cannot be written end in /dev/null, so that Python does not complain about it at its exit."""
    try:
        stream.flush()
    except OSError:
        number = _number_of(stream)
        if number is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)


def _number_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (AttributeError, OSError, ValueError):  # a stream in memory
        return None
