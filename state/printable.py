"""Makes text of unknown origin fit for a terminal or a log: one entry, no control characters, not endless.

An exception's message, a tuple's repr or a server's reply may hold anything: a sequence that recolours the
terminal, a line break that fakes another log entry, ten megabytes of input. What is shown of them passes here.
"""

from __future__ import annotations

import unicodedata

LINE_LIMIT = 1_000
"""Characters of a line; what is cut off is counted."""
SENTENCE_LIMIT = 4_000
"""Characters of a sentence of ours that holds text of others: its end says what to do."""
BLOCK_LINES = 80
"""Lines of a block; of a longer one the beginning and the end are kept, and the end says why."""
_HEAD_LINES = 20


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """The text as a single line: control characters escaped, and cut to `limit` characters."""
    return _escaped(text, "") if len(text) <= limit else f"{_escaped(text[:limit], '')}… ({len(text) - limit:,} more)"


def block(text: str, *, line_limit: int = LINE_LIMIT, lines_max: int = BLOCK_LINES) -> str:
    """The text with its lines: control characters escaped, long lines cut, and too many left out in the middle."""
    lines = text.split("\n")
    if len(lines) > lines_max:
        left_out = len(lines) - lines_max
        tail = lines[_HEAD_LINES - lines_max :]
        lines = [*lines[:_HEAD_LINES], f"… {left_out:,} lines left out …", *tail]
    return "\n".join(_escaped(line, "\t") if len(line) <= line_limit else one_line(line, line_limit) for line in lines)


def said_by(error: BaseException, limit: int = LINE_LIMIT) -> str:
    """An exception's own words as one line, whatever its ``__str__`` does."""
    try:
        return one_line(str(error), limit)
    except Exception as failure:  # noqa: BLE001 - a user's __str__ may raise anything
        return f"<its message raised {type(failure).__name__}>"


def _escaped(text: str, kept: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c in kept or _is_harmless(c) else c.encode("unicode_escape").decode() for c in text)


def _is_harmless(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"  # a space of some other width
