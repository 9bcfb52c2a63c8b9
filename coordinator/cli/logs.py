"""What the library logs, on standard error in the command's own form."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from state.printable import SENTENCE_LIMIT, block, one_line

LOGGER = "txbatch"
PY4J_MODULES = frozenset({"clientserver", "java_gateway"})
"""It logs there by the root logger, with tracebacks."""


class StderrHandler(logging.Handler):
    """Writes to whatever standard error is at the moment: a progress bar puts something else there.

    A record is one line, whatever user text is in it; only a traceback has more.

    Args:
        hidden: text that is never to be printed -> what is printed in its place.
    """

    def __init__(self, hidden: Mapping[str, str]) -> None:
        super().__init__()
        self._hidden = hidden

    def emit(self, record: logging.LogRecord) -> None:
        print(without(self._hidden, self.format(record)), file=sys.stderr, flush=True)


class OneLineFormatter(logging.Formatter):
    """Makes a record a line that starts with the command's name; a traceback follows below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return f"txbatch: {one_line(record.message, SENTENCE_LIMIT)}"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        return block(super().formatException(ei))


def without(hidden: Mapping[str, str], text: str) -> str:
    """The text without what must not be shown."""
    for secret, instead in hidden.items():
        text = text.replace(secret, instead)
    return text


class Quietly(StderrHandler):
    """For other loggers: warnings as ever, but not what py4j says of a Java process that ends; that is told."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING and record.module not in PY4J_MODULES


@contextmanager
def logging_to_stderr(*, debug: bool, hidden: Mapping[str, str] | None = None) -> Iterator[None]:
    """Shows warnings, and with `debug` everything, while the block runs; `hidden` as `StderrHandler`."""
    logger = logging.getLogger(LOGGER)
    before = logger.handlers, logger.propagate, logger.level
    handler = StderrHandler(hidden or {})
    handler.setFormatter(OneLineFormatter())
    logger.handlers = [handler]
    logger.propagate = False  # a user's module may have given the root logger a handler too
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    root = logging.getLogger()
    quietly = None if root.handlers or debug else Quietly(hidden or {})
    if quietly is not None:
        root.addHandler(quietly)
    try:
        yield
    finally:
        if quietly is not None:
            root.removeHandler(quietly)
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])
