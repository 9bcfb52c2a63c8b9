"""Small self-contained HTML tables, for objects displayed in notebooks.

All input is text: it is escaped here and nowhere else, so names and values with markup are displayed literally. A cell
that is already HTML is `Markup`, made only from text escaped here or in a picture.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

from state.printable import one_line
from state.values.whole import is_number, is_whole

CELL_LIMIT = 200
"""Longest text of a cell, in characters."""
ROW_LIMIT = 50
"""Most rows of a table whose length depends on the data."""
_LEFT = "text-align:left;vertical-align:top"
_RIGHT = "text-align:right;vertical-align:top"


class _BoundedRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 8
        self.maxstring = self.maxother = 80


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def cell(value: Any) -> Markup:
    """Returns a value as escaped text: one line, bounded; integers with thousands separators."""
    if isinstance(value, Markup):
        return value
    if is_whole(value):
        return Markup(f"{value:,}")
    return Markup(escape(one_line(value if isinstance(value, str) else repr(value), CELL_LIMIT)))


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> Markup:
    """Returns a table; numbers are aligned to the right, everything else to the left.

    Without headers there is no header row, and the first cell of each row is its header.
    """
    parts = ["<table>"]
    if caption:
        parts.append(f'<caption style="{_LEFT};caption-side:top;font-weight:bold">{cell(caption)}</caption>')
    if headers:
        heads = "".join(f'<th scope="col" style="{_LEFT}">{cell(header)}</th>' for header in headers)
        parts.append(f"<thead><tr>{heads}</tr></thead>")
    parts.append("<tbody>")
    parts += [f"<tr>{_cells(row, has_head=not headers)}</tr>" for row in rows]
    parts.append("</tbody></table>")
    return Markup("".join(parts))


def section(*parts: str) -> str:
    return f'<div class="txbatch">{"".join(parts)}</div>'


def paragraph(text: str) -> Markup:
    return Markup(f"<p>{cell(text)}</p>")


def bar(fraction: float) -> Markup:
    """Returns a progress bar."""
    return Markup(f'<progress max="1" value="{fraction:.3f}"></progress> {fraction:.0%}')


def notebook_display() -> Any:
    """Returns IPython's function that displays an object in a cell, or None outside a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return import_module("IPython.display").display if hasattr(shell, "kernel") else None


def preformatted(text: str) -> Markup:
    """Returns lines unchanged; long ones scroll."""
    return Markup(f'<pre style="overflow-x:auto">{escape(text)}</pre>')


def _cells(row: Sequence[Any], *, has_head: bool) -> str:
    return "".join(_cell(value, is_head=has_head and position == 0) for position, value in enumerate(row))


def _cell(value: Any, *, is_head: bool) -> str:
    if is_head:
        return f'<th scope="row" style="{_LEFT}">{cell(value)}</th>'
    is_right = is_number(value) or (isinstance(value, Markup) and value.replace(".", "", 1).isdecimal())
    return f'<td style="{_RIGHT if is_right else _LEFT}">{cell(value)}</td>'


def bounded_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "") -> Markup:
    """Returns a table of the first rows, with a note on how many are left out."""
    shown = table(headers, rows[:ROW_LIMIT], caption=caption)
    left_out = len(rows) - ROW_LIMIT
    return Markup(shown + paragraph(f"and {left_out:,} more")) if left_out > 0 else shown


def states_table(states: Mapping[str, Any], *, caption: str = "") -> Markup:
    """Returns a table of decoded states: the number of entries of each, and its first entries."""
    rows = [
        (
            name,
            len(value) if isinstance(value, Collection) and not isinstance(value, str | bytes) else "",
            bounded_repr(value),
        )
        for name, value in states.items()
    ]
    return table(("state", "entries", "contents"), rows, caption=caption)


def bounded_repr(value: Any) -> str:
    """Returns the repr of plain data, shortened to the first entries of a container and the ends of a long text."""
    return one_line(_BoundedRepr().repr(value))
