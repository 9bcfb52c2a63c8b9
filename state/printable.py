"""Makes untrusted text safe for a terminal or a log: one entry, no control characters, bounded length.

An exception's message, a tuple's repr or a server's reply may hold anything: a sequence that recolours the
terminal, a line break that fakes another log entry, ten megabytes of input. All such text passes through here.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

LINE_LIMIT = 1_000
"""Longest line, in characters; a cut line ends with the number of missing ones."""
SENTENCE_LIMIT = 4_000
"""Longest message of txbatch that quotes foreign text, in characters: its end, the remedy, must survive."""
BLOCK_LINES = 80
"""Most lines of a block; a longer block keeps its beginning and more of its end, which usually has the cause."""
_HEAD_LINES = 20


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Returns the text as one line: control characters escaped, cut to `limit` characters."""
    return printable(text) if len(text) <= limit else f"{printable(text[:limit])}… ({len(text) - limit:,} more)"


def block(text: str, *, line_limit: int = LINE_LIMIT, lines_max: int = BLOCK_LINES) -> str:
    """Returns the text as a block: control characters escaped, long lines cut, the middle of a long block left out."""
    lines = text.split("\n")
    if len(lines) > lines_max:
        left_out = len(lines) - lines_max
        tail = lines[_HEAD_LINES - lines_max :]
        lines = [*lines[:_HEAD_LINES], f"… {left_out:,} lines left out …", *tail]
    return "\n".join(
        printable(line, kept="\t") if len(line) <= line_limit else one_line(line, line_limit) for line in lines
    )


def message_of(error: BaseException, limit: int = LINE_LIMIT) -> str:
    """Returns an exception's message as one line, whatever its ``__str__`` does."""
    try:
        return one_line(str(error), limit)
    except Exception as failure:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<its message raised {type(failure).__name__}>"


def counted(number: int, noun: str) -> str:
    """Returns the number with its noun for messages, such as "1 tuple" or "2 tuples"; the plural adds an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def table_lines(rows: Iterable[Sequence[str]], *, right: Container[int] = ()) -> Iterator[str]:
    """Yields the rows as lines with aligned columns; `right` has the indexes of right-aligned columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = (cell.rjust(width) if i in right else cell.ljust(width) for i, (cell, width) in enumerate(cells))
        yield "  ".join(padded).rstrip()


def printable(text: str, *, kept: str = "") -> str:
    """Returns the whole text with every control character, and any other unprintable one, escaped."""
    if text.isprintable():
        return text
    return "".join(c if c in kept or _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def json_line(value: Any, *, default: Callable[[Any], Any] | None = None, allow_nan: bool = True) -> str:
    """Returns a value as JSON on one line, safe to display: characters that `printable` escapes get JSON's escapes.

    For `default` and `allow_nan` see `json.dumps`.
    """
    text = json.dumps(value, ensure_ascii=False, default=default, allow_nan=allow_nan)
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else json.dumps(c)[1:-1] for c in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # a space of any width
