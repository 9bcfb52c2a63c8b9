"""What the library logs, on standard error in the command's own form."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = "txbatch"
PY4J_MODULES = frozenset({"clientserver", "java_gateway"})
"""It logs there by the root logger, with tracebacks."""


class StderrHandler(logging.Handler):
    """Writes to whatever standard error is at the moment: a progress bar puts something else there."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


class Quietly(StderrHandler):
    """For other loggers: warnings as ever, but not what py4j says of a Java process that ends; that is told."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING and record.module not in PY4J_MODULES


@contextmanager
def logging_to_stderr(*, debug: bool) -> Iterator[None]:
    """Shows warnings, and with `debug` everything, while the block runs."""
    logger = logging.getLogger(LOGGER)
    before = logger.handlers, logger.propagate, logger.level
    handler = StderrHandler()
    handler.setFormatter(logging.Formatter("txbatch: %(message)s"))
    logger.handlers = [handler]
    logger.propagate = False  # a user's module may have given the root logger a handler too
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    root = logging.getLogger()
    quietly = None if root.handlers or debug else Quietly()
    if quietly is not None:
        root.addHandler(quietly)
    try:
        yield
    finally:
        if quietly is not None:
            root.removeHandler(quietly)
        logger.handlers, logger.propagate = before[:2]
        logger.setLevel(before[2])
