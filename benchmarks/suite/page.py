"""The report as one HTML page: it needs no other file, no network and no script, and fits a phone. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from benchmarks.suite.tables import Table

if TYPE_CHECKING:
    from benchmarks.suite.plots import Plot

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2328; --faint: #d0d7de; --quiet: #57606a; --band: #f6f8fa }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --ink: #e6edf3; --faint: #30363d; --quiet: #9da7b3; --band: #161b22 }
}
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
figure { margin: 1rem 0 } img { max-width: 100%; height: auto }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; white-space: nowrap }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--faint) }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--ground) }
.note { color: var(--quiet) } .warning { background: var(--band); padding: .5rem .8rem; border-left: 4px solid #bf8700 }
dt { font-weight: 600 } dd { margin: 0 0 .4rem 0; overflow-wrap: anywhere }
"""


def page(
    about: Mapping[str, Any],
    tables: Sequence[Table],
    plots: Sequence[Plot],
    *,
    warnings: Iterable[str],
    notes: Iterable[str],
) -> str:
    """Returns the page.

    Args:
        about: facts of the run, as in the results file.
        tables: in order.
        plots: in order; shown before the tables.
        warnings: what makes the figures less than they should be.
        notes: how to read them.
    """
    body = [
        "<h1>txbatch: benchmark</h1>",
        *(f'<p class="warning">{escape(text)}</p>' for text in warnings),
        *(f'<p class="note">{escape(text)}</p>' for text in notes),
        *map(_figure, plots),
        *map(_table, tables),
        "<h2>Measured on</h2>",
        _facts(about),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>txbatch: benchmark</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _figure(plot: Plot) -> str:
    images = {theme: f"data:image/png;base64,{base64.b64encode(png).decode()}" for theme, png in plot.images.items()}
    return (
        "<figure><picture>"
        f'<source media="(prefers-color-scheme: dark)" srcset="{images["dark"]}">'
        f'<img src="{images["light"]}" alt="{escape(plot.title, quote=True)}"></picture></figure>'
    )


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.headings)
    rows = "\n".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    return (
        f"<h2>{escape(table.title)}</h2>\n"
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>'
    )


def _facts(about: Mapping[str, Any]) -> str:
    entries = []
    for name, value in about.items():
        shown = (
            ", ".join(f"{key} {entry}" for key, entry in value.items()) if isinstance(value, Mapping) else str(value)
        )
        entries.append(f"<dt>{escape(name)}</dt><dd>{escape(shown)}</dd>")
    return f"<dl>\n{''.join(entries)}\n</dl>"
