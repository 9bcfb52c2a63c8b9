"""Turns results into tables, plots and the page; what the figures fall short of is said first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.suite.cells import Cell
from benchmarks.suite.figures import ENOUGH_ROUNDS, Figures, all_figures
from benchmarks.suite.page import page
from benchmarks.suite.results_file import Results
from benchmarks.suite.rounds import left_out
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.tables import tables

if TYPE_CHECKING:
    from benchmarks.suite.plots import Plot

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
