"""``--log-format`` and ``--log-level``: with either, all that a run says on standard error is a log record.

Progress, notes and the error that ends the run included, so that a line is a record for whatever reads standard error.
"""

from __future__ import annotations

import logging
import re
import traceback
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from coordinator.cli.exits import StoppedError, exit_code_of
from coordinator.cli.progress import SentenceProgress, Statistics
from coordinator.telemetry.log_formats import DETAILS, FIGURES, LogFormat

_LOG = logging.getLogger("txbatch")
ATTEMPT = re.compile(r"(\d+):[0-9a-f]+")
"""An attempt as errors name it; the batch of a sub-topology looks different."""


class LogLevel(StrEnum):
    """The levels that ``--log-level`` takes."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogStyle:
    """How a command logs.

    Attributes:
        form: of the records.
        level: the lowest that is shown.
    """

    form: LogFormat
    level: LogLevel

    @classmethod
    def of(cls, form: LogFormat | None, level: LogLevel | None) -> LogStyle | None:
        """Returns the style that these options ask for; None, without either, for a person at a terminal."""
        if form is None and level is None:
            return None
        return cls(form or LogFormat.PLAIN, level or LogLevel.INFO)


def log_sentence(text: str, level: int = logging.INFO, *, figures: Any = None, **about: Any) -> None:
    """Logs text of one or more lines: the first is the message, the others are its details."""
    message, _, details = text.partition("\n")
    extra = {**about, **({DETAILS: details} if details else {}), **({} if figures is None else {FIGURES: figures})}
    _LOG.log(level, "%s", message, extra=extra)


def log_error(sentence: str, error: BaseException, *, debug: bool = False) -> None:
    """Logs the error that ends a command, with what is known of where it happened."""
    level = logging.WARNING if isinstance(error, (StoppedError, KeyboardInterrupt)) else logging.ERROR
    trace = "\n" + "".join(traceback.format_exception(error)) if debug else ""
    log_sentence(sentence + trace, level, **_about(error), exit_code=int(exit_code_of(error)))


def _about(error: BaseException) -> dict[str, Any]:
    """Returns the fields that an error knows."""
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


class LoggedProgress(SentenceProgress[Statistics]):
    """Logs each sentence."""

    def write(self, sentence: str) -> None:
        log_sentence(sentence)

    def close(self, *, is_done: bool) -> None:
        if not is_done and self._figures.has_result():
            self.say(self._figures.summary())
