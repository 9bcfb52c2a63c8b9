"""Formats log records for machines and for services: JSON, or text with a timestamp, one line a record.

In Python, give one of these formatters to a handler of the logger "txbatch". Records have the fields that
`coordinator.watching.log_fields` names.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from coordinator.watching.log_fields import FIELDS
from state.printable import SENTENCE_LIMIT, block, json_line, one_line

DETAILS = "details"
"""The attribute of a record with further lines, such as a user's traceback."""
FIGURES = "figures"
"""The attribute of a record with a mapping for machines, such as the figures of a run that has ended."""
_TOLD = frozenset({"reason"})  # the message tells it too


class LogFormat(StrEnum):
    """The forms that ``--log-format`` takes."""

    PLAIN = "plain"
    JSON = "json"


class LineFormatter(logging.Formatter):
    """Formats a record without what must not be shown.

    Args:
        hidden: text that must never be shown, such as a password -> what is shown in its place.
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
        """Returns when the record was made: ISO 8601 in local time, with the offset."""
        return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")

    def fields_of(self, record: logging.LogRecord) -> dict[str, Any]:
        """Returns those of `FIELDS` that the record has."""
        found = ((name, getattr(record, name, None)) for name in FIELDS)
        return {name: self._plain(value) for name, value in found if value is not None}

    def details_of(self, record: logging.LogRecord) -> str:
        """Returns further lines of the record, its traceback among them."""
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
        fields = [f"{name}={value}" for name, value in self.fields_of(record).items() if name not in _TOLD]
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
        told: dict[str, Any] = {
            "time": self.time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self.shown(one_line(record.getMessage(), SENTENCE_LIMIT)),
            **self.fields_of(record),
        }
        details, figures = self.details_of(record), getattr(record, FIGURES, None)
        if details:
            told["details"] = details
        if figures is not None:
            told["figures"] = figures
        return json_line(told)


def formatter_of(form: LogFormat, hidden: Mapping[str, str] | None = None) -> LineFormatter:
    """Returns the formatter of a form; for `hidden` see `LineFormatter`."""
    return JsonLogLines(hidden) if form is LogFormat.JSON else TimestampedLines(hidden)
