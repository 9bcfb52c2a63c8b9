"""Where rows of CSV end: a line break inside quotes, or after the escape character, is part of a value.

Follows the csv module: a quote opens a quoted value only where a value begins. Rows are told apart on bytes, which
UTF-8 allows as long as the characters of the dialect are ASCII.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from typing import Any

from coordinator.sources.files.record_scanner import BYTE_ORDER_MARK, after_lines
from state.errors import TopologyError


class RowFinder:
    """Finds the ends of rows. A spec: pickles.

    Args:
        options: of the dialect, see `CsvDialect`.

    Raises:
        TopologyError: a character of the dialect is not ASCII, or is a line break.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name in ("delimiter", "quotechar", "escapechar"):
            character = options[name]
            if character is not None and (not character.isascii() or character in "\r\n"):
                raise TopologyError(
                    f"{name}={character!r} of a CSV file has to be an ASCII character and no line break"
                )
        quotes = options["quoting"] != csv.QUOTE_NONE and options["quotechar"]
        self._special = tuple(
            character.encode() for character in (quotes, options["escapechar"]) if character
        )  # where none of them occurs, every line is a row
        self._row = re.compile(_pattern(options, options["quotechar"] if quotes else None), re.DOTALL)

    def __call__(self, block: bytes, cursor: int, wanted: int) -> tuple[int, int]:
        """See `Find`; stops after the last whole row."""
        if all(block.find(character, cursor) < 0 for character in self._special):
            stop, found = after_lines(block, cursor, wanted)
            return (stop, found) if found == wanted else (max(cursor, block.rfind(b"\n", cursor) + 1), found)
        found = 0
        while found < wanted and (row := self._row.match(block, cursor)):
            cursor = row.end()
            found += 1
        return cursor, found


def _pattern(options: Mapping[str, Any], quote: str | None) -> bytes:
    """A row up to and with its line feed."""
    delimiter, escape = _literal(options["delimiter"]), _literal(options["escapechar"])
    escaped = b"|" + escape + b"." if escape else b""
    value = b"(?:[^" + delimiter + escape + rb"\n]++" + escaped + b")*+"
    if quote is not None:
        mark = _literal(quote)
        doubled = b"|" + mark + mark if options["doublequote"] else b""
        spaces = b" *+" if options["skipinitialspace"] else b""
        quoted = mark + b"(?:[^" + mark + escape + b"]++" + doubled + escaped + b")*+" + mark
        value = b"(?:" + spaces + quoted + value + b"|(?!" + spaces + mark + b")" + value + b")"
    return b"(?:" + BYTE_ORDER_MARK + b")?" + value + b"(?:" + delimiter + value + rb")*+\n"


def _literal(character: str | None) -> bytes:
    return b"" if character is None else re.escape(character).encode()
