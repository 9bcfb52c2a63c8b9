"""The further fields of txbatch's log records, and formatters for machines and services.

The fields of one call are given with ``extra=fields(...)``. The topology is the same for all records of a run, so the
run names it once. A filter on txbatch's loggers adds it to each record, for any handler and formatter.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from state.attempt import TransactionAttempt
from state.printable import SENTENCE_LIMIT, block, json_line, one_line

LOGGERS = (
    "txbatch",
    *(f"txbatch.{area}" for area in ("files", "kafka", "redis", "redis_streams", "spark")),
)
"""The logger of runs, and those of areas, below it."""
logging.getLogger(LOGGERS[0]).addHandler(logging.NullHandler())  # who sets up no logging sees no records
FIELDS = ("topology", "txid", "last_txid", "attempt", "wave", "phase", "component", "task", "reason", "exit_code")
"""The attributes that formatters show, in this order, if a record has them."""


@dataclass(slots=True)
class Subject:
    """The subject of the log records of a block.

    Attributes:
        topology_id: the topology, None while it is unknown.
    """

    topology_id: str | None = None


_SUBJECT: ContextVar[Subject | None] = ContextVar("txbatch_subject", default=None)


def fields(attempt: TransactionAttempt | None = None, **others: Any) -> dict[str, Any]:
    """Returns the ``extra`` of a log call, without fields that are None.

    Args:
        attempt: the attempt that the record is about; its txid is a separate field.
        others: further `FIELDS`.
    """
    known = {} if attempt is None else {"txid": attempt.txid, "attempt": str(attempt)}
    return {**known, **{name: value for name, value in others.items() if value is not None}}


class _TopologyField(logging.Filter):
    """Writes the topology of the current run into each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        subject = _SUBJECT.get()
        if subject is not None and subject.topology_id is not None and not hasattr(record, "topology"):
            record.topology = subject.topology_id
        return True


_FILTER = _TopologyField()


@contextmanager
def logs_of(topology_id: str | None) -> Iterator[Subject]:
    """Names the topology of the block's log records; nests (driver).

    The filter stays on the loggers: it changes no record outside a block.
    """
    for name in LOGGERS:  # a logger's filter does not see the records of loggers below it
        logging.getLogger(name).addFilter(_FILTER)
    before, subject = _SUBJECT.get(), Subject(topology_id)
    _SUBJECT.set(subject)
    try:
        yield subject
    finally:
        _SUBJECT.set(before)  # not by a token: a block may be left on another thread


def name_topology(topology_id: str) -> None:
    """Names the topology for the rest of the enclosing `logs_of`."""
    subject = _SUBJECT.get()
    if subject is not None:
        subject.topology_id = topology_id


DETAILS = "details"
"""The attribute of a record with further lines, such as a user's traceback."""
FIGURES = "figures"
"""The attribute of a record with a mapping for machines, such as the figures of a run that has ended."""
_IN_MESSAGE = frozenset({"reason"})


class LogFormat(StrEnum):
    """The values of ``--log-format``."""

    PLAIN = "plain"
    JSON = "json"


class LineFormatter(logging.Formatter):
    """Formats a record without secrets.

    Args:
        hidden: text that must never be shown, such as a password -> its replacement.
    """

    def __init__(self, hidden: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._hidden = hidden or {}

    def shown(self, text: str) -> str:
        """Returns the text with every hidden part replaced."""
        for secret, instead in self._hidden.items():
            text = text.replace(secret, instead)
        return text

    def time_of(self, record: logging.LogRecord) -> str:
        """Returns the record's time: ISO 8601 in local time, with the offset."""
        return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Returns the `FIELDS` that the record has."""
        found = ((name, getattr(record, name, None)) for name in FIELDS)
        return {name: self._plain(value) for name, value in found if value is not None}

    def details_of(self, record: logging.LogRecord) -> str:
        """Returns further lines of the record, including its traceback."""
        parts = [str(getattr(record, DETAILS, ""))]
        if record.exc_info:
            parts.append(self.formatException(record.exc_info))
        return self.shown(block("\n".join(part for part in parts if part)))

    def _plain(self, value: Any) -> Any:
        return value if isinstance(value, (int, float)) else self.shown(one_line(str(value), SENTENCE_LIMIT))


class TimestampedLines(LineFormatter):
    """Formats a record as ``TIME LEVEL MESSAGE [field=value …]``; further lines are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as text."""
        message = self.shown(one_line(record.getMessage(), SENTENCE_LIMIT))
        fields = [f"{name}={value}" for name, value in self.fields_of(record).items() if name not in _IN_MESSAGE]
        lines = [
            " ".join([self.time_of(record), record.levelname, message, *([f"[{' '.join(fields)}]"] * bool(fields))])
        ]
        details = self.details_of(record)
        return "\n".join([*lines, *(f"  {line}" for line in details.splitlines())])


class JsonLogLines(LineFormatter):
    """Formats a record as one JSON object on one line.

    ``time``, ``level``, ``logger`` and ``message`` are always there; ``topology``, ``txid``, ``attempt``, ``wave`` and
    the other fields where they are known; ``details`` has the traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as one line."""
        line: dict[str, Any] = {
            "time": self.time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.shown(one_line(record.getMessage(), SENTENCE_LIMIT)),
            **self.fields_of(record),
        }
        details, figures = self.details_of(record), getattr(record, FIGURES, None)
        if details:
            line["details"] = details
        if figures is not None:
            line["figures"] = figures
        return json_line(line)


def formatter_of(form: LogFormat, hidden: Mapping[str, str] | None = None) -> LineFormatter:
    """Returns the formatter of a form; for `hidden` see `LineFormatter`."""
    return JsonLogLines(hidden) if form is LogFormat.JSON else TimestampedLines(hidden)
