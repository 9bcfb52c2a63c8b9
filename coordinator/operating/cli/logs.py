"""Shows logs on standard error: in the form of the command's other messages, or everything as log records.

With ``--log-format`` or ``--log-level``, progress, notes and the error that ends a run are log records too, so that
every line on standard error is a record.
"""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, TextIO

from coordinator.operating.cli.exits import StoppedError, exit_code_of
from coordinator.operating.cli.terminal import say, without
from coordinator.watching.log_records import DETAILS, FIGURES, Subject, fields
from state.printable import SENTENCE_LIMIT, block, one_line

_LOG = logging.getLogger("txbatch")
OUTPUT = "txbatch.output"
"""The logger for output of user code and Spark's workers, if everything is logged as records."""
ATTEMPT = re.compile(r"(\d+):[0-9a-f]+")
"""The name of an attempt in errors; a batch of a sub-topology is named differently."""
PY4J_MODULES = frozenset({"clientserver", "java_gateway"})
"""Modules of py4j that log through the root logger, with tracebacks."""


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class StderrHandler(logging.Handler):
    """Writes to the current ``sys.stderr``, since a progress bar replaces it.

    A record takes one line, even if it quotes user text; only a traceback takes more.
    """

    def __init__(self, hidden: Mapping[str, str], stream: TextIO | None = None) -> None:
        super().__init__()
        self._hidden, self._stream = hidden, stream

    def emit(self, record: logging.LogRecord) -> None:
        say(*without(self._hidden, self.format(record)).split("\n"), to=self._stream or sys.stderr, flush=True)


class RecordStream(io.TextIOBase):
    """Replaces standard error, and logs each line that is written to it as a record.

    The output of tasks arrives here through Spark's Java process, and so does output of user code on the driver.
    """

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._subject = subject
        self._lock = threading.Lock()
        self._begun = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._log(line)
        return len(text)

    def close(self) -> None:
        """Logs a last line without a line break."""
        with self._lock:
            line, self._begun = self._begun, ""
        self._log(line)

    def _log(self, line: str) -> None:
        if line.strip():
            logging.getLogger(OUTPUT).info("%s", line, extra=fields(topology=self._subject.topology_id))


class OneLineFormatter(logging.Formatter):
    """Formats a record as one line that begins with the command's name, followed by its traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return f"txbatch: {one_line(record.message, SENTENCE_LIMIT)}"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        return block(super().formatException(ei))


class ForeignWarnings(StderrHandler):
    """Shows warnings of other loggers."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Leaves out the logs of py4j about the end of the Java process, which is reported anyway."""
    return record.module not in PY4J_MODULES


@contextmanager
def logging_to_stderr(
    *,
    debug: bool,
    hidden: Mapping[str, str] | None = None,
    form: logging.Formatter | None = None,
    level: int = logging.WARNING,
) -> Iterator[None]:
    """Shows log records while the block runs.

    By default a record is one line in the form of the command's other messages. Our own records are shown from
    `level` on, with `debug` all of them; records of other loggers are shown from WARNING on.
    """
    logger = _LOG
    before = logger.handlers, logger.propagate, logger.level
    stream = sys.stderr if form is not None else None  # then a `RecordStream` may take its place
    handler = StderrHandler(hidden or {}, stream)
    handler.setFormatter(form or OneLineFormatter())
    logger.handlers = [handler]
    logger.propagate = False  # a user's module may have given the root logger a handler too
    logger.setLevel(logging.DEBUG if debug else level)
    root = logging.getLogger()
    quietly = None if root.handlers or debug else ForeignWarnings(hidden or {}, stream)
    if quietly is not None:
        quietly.setFormatter(form)
        root.addHandler(quietly)
        root.addFilter(is_not_of_py4j)  # left there: threads of py4j may outlive the block
    try:
        yield
    finally:
        if quietly is not None:
            root.removeHandler(quietly)
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])


def log_sentence(text: str, level: int = logging.INFO, *, figures: Any = None, **about: Any) -> None:
    """Logs text of one or more lines: the first is the message, the others are its details."""
    message, _, details = text.partition("\n")
    extra = {**about, **({DETAILS: details} if details else {}), **({} if figures is None else {FIGURES: figures})}
    _LOG.log(level, "%s", message, extra=extra)


def log_error(sentence: str, error: BaseException, *, debug: bool = False) -> None:
    """Logs the error that ends a command, with the place where it happened if that is known."""
    level = logging.WARNING if isinstance(error, (StoppedError, KeyboardInterrupt)) else logging.ERROR
    trace = "\n" + "".join(traceback.format_exception(error)) if debug else ""
    log_sentence(sentence + trace, level, **_about(error), exit_code=int(exit_code_of(error)))


def _about(error: BaseException) -> dict[str, Any]:
    attempt = getattr(error, "attempt", "")
    found = ATTEMPT.fullmatch(attempt)
    known = {
        "txid": getattr(error, "txid", None) if found is None else int(found[1]),
        "attempt": attempt or None,
        "component": getattr(error, "component_id", None),
        "task": getattr(error, "task_index", None),
        "reason": getattr(error, "last_reason", None),
    }
    return {name: value for name, value in known.items() if value is not None}
