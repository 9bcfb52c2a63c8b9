"""Makes standard output and error usable: they may be closed, not in UTF-8, on a full disk, or an unread pipe.

`txbatch state get words counts | head` should end like `cat counts | head`: without a message, as if by SIGPIPE. The
signal itself cannot be used, because it would also end a run whose server closes a connection.
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
"""The exit code of a command whose output has lost its reader, as shells show it for SIGPIPE."""
UNWRITTEN = 1
AS_JSON = "txbatch as JSON"
"""Name of the codec error handler for characters that an encoding lacks."""


def prepare_streams() -> None:
    """Prepares all three streams so that any text can be printed; called once, before any file is opened.

    A closed stream is replaced by /dev/null: otherwise a file or socket would get its number, and the output of child
    processes. Characters that an encoding lacks are escaped as in JSON, so that JSON stays valid.
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
    """Standard error on a disk that may be full or broken: the run continues without the lost output."""

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
    """Returns whether an error means that the command's output has lost its reader, not that a socket broke."""
    return isinstance(error, BrokenPipeError) and any(map(_has_lost_reader, (sys.stdout, sys.stderr)))


def code_after_output(code: int, stdout: TextIO) -> int:
    """Writes buffered output, and returns the exit code; called once, last in the process.

    A command that has failed keeps its code. Otherwise, output without a reader ends it with `READER_GONE`, and output
    that cannot be written with 1 and a sentence on standard error.

    Args:
        code: exit code of the command.
        stdout: standard output as it was when the command began; typer replaces a broken stream.
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
    """Redirects a stream that cannot be written to /dev/null, so that Python does not complain at its exit."""
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
