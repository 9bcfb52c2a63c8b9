"""Turns results into tables, plots and one HTML page, which needs no other file, no network and no script."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.suite.cells import Cell
from benchmarks.suite.results_file import Results
from benchmarks.suite.rounds import left_out
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.tables import ENOUGH_ROUNDS, Figures, Table, all_figures, tables

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
PAGE = "report.html"
NOTES = (
    "Figures are medians over the rounds, spread is the lowest and the highest round. Rate: the next transaction "
    "always waits. Latency: transactions arrive at fixed times at half the side's own peak, and wait from then on, "
    "whether anybody looks at them or not. The number of tasks is that of Spark's threads, too. Load is the machine's "
    "load average after a measurement, the highest of all rounds; the measurement itself is part of it.",
    "The sides do not promise the same: " + "; ".join(f"{side.title}: {side.promise}" for side in SIDES.values()) + ".",
)


def write_report(results: Results, folder: Path, unmeasured: Iterable[str]) -> tuple[str, Path]:
    """Writes page and plots into the folder.

    Args:
        results: what was measured.
        folder: where to write; exists.
        unmeasured: sentences about what was left out.

    Returns:
        The tables for a terminal, and the path of the page.
    """
    found = all_figures(results)
    shown = tables(found)
    warnings = [*_shortfalls(found, results), *unmeasured, *left_out(results)]
    drawn, complaint = _drawn(found)
    for plot in drawn:
        for theme, image in plot.images.items():
            (folder / f"{plot.name}-{theme}.png").write_bytes(image)
    warnings += [complaint] if complaint else []
    path = folder / PAGE
    path.write_text(page(results.about, shown, drawn, warnings=warnings, notes=NOTES), encoding="utf-8")
    sections = [*(table.plain() for table in shown), "\n".join(f"! {text}" for text in warnings)]
    return "\n\n".join(section for section in sections if section), path


def _drawn(found: Mapping[Cell, Figures]) -> tuple[list[Plot], str]:
    """Returns the plots, or none and why."""
    try:
        from benchmarks.suite.plots import plots
    except ModuleNotFoundError as error:
        return [], f"there are no plots: module {error.name!r} is not installed; run: pip install 'txbatch[bench]'"
    return plots(found), ""


def _shortfalls(found: Mapping[Cell, Figures], results: Results) -> list[str]:
    """Returns why the figures are less reliable than they should be."""
    said = []
    fewest = min((len(entry.rounds) for entry in results if entry.rounds), default=0)
    if fewest < ENOUGH_ROUNDS:
        said.append(f"some figures are of {fewest} of {ENOUGH_ROUNDS} rounds: run again with --rounds {ENOUGH_ROUNDS}.")
    cores = results.about["machine"]["cores"]
    load = max((entry.load for entry in found.values()), default=0.0)
    if load > 2 * cores:
        said.append(
            f"the machine was busy: its load average reached {load:.1f} on {cores} cores. Trust ratios between sides "
            "more than rates, and measure again when it is quiet."
        )
    return said


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
