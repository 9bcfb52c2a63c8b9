"""The report's plots, each as a PNG on light and on dark ground. Needs matplotlib.

Sides keep their colour and their mark in every plot. Points are medians, bars the lowest and the highest round.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import Spread
from benchmarks.suite.cells import Cell, Kind
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.tables import Figures
from benchmarks.suite.workloads.table import TITLES
from state.printable import counted

MARKS = "osD^vP*Xh"
SIZE_INCHES = (7.2, 4.8)
DOTS_PER_INCH = 130


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours.

    Attributes:
        name: ends the file's name.
        ground: behind everything.
        ink: text and axes.
        faint: grid.
        sides: one for each side, in the order of `SIDES`.
    """

    name: str
    ground: str
    ink: str
    faint: str
    sides: Sequence[str]


LIGHT = Theme(
    "light",
    "#ffffff",
    "#1f2328",
    "#d0d7de",
    ("#0550ae", "#1b7c83", "#bc4c00", "#9a6700", "#8250df", "#bf3989", "#4d7c0f", "#a40e26", "#57606a"),
)
DARK = Theme(
    "dark",
    "#0d1117",
    "#e6edf3",
    "#30363d",
    ("#79c0ff", "#56d4dd", "#ffa657", "#e3b341", "#d2a8ff", "#ff9bce", "#a3e635", "#ff7b72", "#9da7b3"),
)
Point = tuple[float, Spread]


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot.

    Attributes:
        name: begins the file's name.
        title: what it shows, for its caption and for readers who cannot see it.
        images: theme -> PNG.
    """

    name: str
    title: str
    images: Mapping[str, bytes]


def plots(found: Mapping[Cell, Figures]) -> list[Plot]:
    """Returns the plots for which there is something to show."""
    entries = list(found.values())
    rates = [entry for entry in entries if entry.cell.kind == Kind.RATE.value and not entry.cell.window]
    words = [entry for entry in rates if entry.cell.workload == "word_count"]
    latencies = [entry for entry in entries if entry.cell.kind == Kind.LATENCY.value]
    drawn = []
    tasks = _usual_tasks(words)
    at_tasks = [entry for entry in words if entry.cell.tasks == tasks or not SIDES[entry.cell.side].uses_tasks]
    if at_tasks:
        title = f"Word count, {counted(tasks, 'task')}: transactions per second"
        drawn.append(_plot("rate", title, _lines(_by_size(at_tasks, _rate), "tuples per transaction", "tx/s")))
        title = f"Word count, {counted(tasks, 'task')}: tuples per second"
        drawn.append(_plot("tuples", title, _lines(_by_size(at_tasks, _tuples), "tuples per transaction", "tuples/s")))
    for size in _sizes_with_several_tasks(words):
        chosen = {
            side: [
                (entry.cell.tasks, entry.per_s)
                for entry in words
                if entry.cell.side == side and entry.cell.tuples == size
            ]
            for side in SIDES
        }
        title = f"Word count, {size:,} tuples a transaction: transactions per second by tasks"
        drawn.append(_plot(f"tasks-{size}", title, _lines(chosen, "tasks", "tx/s")))
    if latencies:
        series = _by_size(latencies, lambda entry: entry.latencies_ms["p99"])
        drawn.append(
            _plot("latency", "Latency at half the peak, p99", _lines(series, "tuples per transaction", "milliseconds"))
        )
    if len({entry.cell.workload for entry in rates}) > 1:
        drawn.append(_plot("workloads", "txbatch: tuples per second by workload", _bars(rates)))
    return drawn


def _rate(entry: Figures) -> Spread:
    return entry.per_s


def _tuples(entry: Figures) -> Spread:
    size, found = entry.cell.tuples, entry.per_s
    return Spread(size * found.median, size * found.low, size * found.high, found.rounds)


def _usual_tasks(entries: Sequence[Figures]) -> int:
    """Returns 2, as the tables in the documentation, or else the smallest number of tasks there is."""
    tasks = {entry.cell.tasks for entry in entries if SIDES[entry.cell.side].uses_tasks}
    return 2 if 2 in tasks or not tasks else min(tasks)


def _sizes_with_several_tasks(entries: Sequence[Figures]) -> list[int]:
    sizes = sorted({entry.cell.tuples for entry in entries})
    return [
        size
        for size in sizes
        if len({e.cell.tasks for e in entries if e.cell.tuples == size and SIDES[e.cell.side].uses_tasks}) > 1
    ]


def _by_size(entries: Sequence[Figures], value: Callable[[Figures], Spread]) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {}
    for entry in sorted(entries, key=lambda entry: entry.cell.tuples):
        found.setdefault(entry.cell.side, []).append((entry.cell.tuples, value(entry)))
    return found


def _lines(series: Mapping[str, Sequence[Point]], across: str, up: str) -> Callable[[Axes, Theme], None]:
    """Returns what draws a line for each side, both axes logarithmic."""

    def draw(axes: Axes, theme: Theme) -> None:
        for index, (side, known) in enumerate(SIDES.items()):
            points = sorted(series.get(side, ()), key=lambda point: point[0])
            if points:
                medians = [value.median for _, value in points]
                spans = [
                    [value.median - value.low for _, value in points],
                    [value.high - value.median for _, value in points],
                ]
                axes.errorbar(
                    [place for place, _ in points],
                    medians,
                    yerr=spans,
                    label=known.title,
                    color=theme.sides[index],
                    marker=MARKS[index],
                    markersize=5,
                    linewidth=1.6,
                    capsize=3,
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        places = sorted({place for points in series.values() for place, _ in points})
        axes.set_xticks(places, [f"{place:,.0f}" for place in places])
        axes.set_xticks([], minor=True)
        axes.yaxis.set_major_formatter(_figure)
        axes.yaxis.set_minor_formatter(lambda value, _: _figure(value) if f"{value:e}"[0] in "25" else "")
        axes.set_xlabel(across)
        axes.set_ylabel(up)

    return draw


def _figure(value: float, _: float = 0) -> str:
    return f"{value:,.10g}"


def _bars(rates: Sequence[Figures]) -> Callable[[Axes, Theme], None]:
    """Returns what draws txbatch's tuples per second: a group of bars for each size, a bar for each workload."""
    tasks = _usual_tasks(rates)
    mine = [entry for entry in rates if entry.cell.side == "txbatch" and entry.cell.tasks == tasks]
    others = {entry.cell.tuples for entry in mine if entry.cell.workload != "word_count"}
    sizes = sorted({entry.cell.tuples for entry in mine} & others)
    width = 0.8 / len(TITLES)

    def draw(axes: Axes, theme: Theme) -> None:
        for index, (workload, title) in enumerate(TITLES.items()):
            chosen = [entry for entry in mine if entry.cell.workload == workload and entry.cell.tuples in sizes]
            places = [sizes.index(entry.cell.tuples) + (index - (len(TITLES) - 1) / 2) * width for entry in chosen]
            heights = [_tuples(entry).median for entry in chosen]
            axes.bar(places, heights, width * 0.92, label=title, color=theme.sides[2 * index])
        axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("tuples per transaction")
        axes.set_ylabel("tuples/s")

    return draw


def _plot(name: str, title: str, draw: Callable[[Axes, Theme], None]) -> Plot:
    return Plot(name, title, {theme.name: png(title, draw, theme) for theme in (LIGHT, DARK)})


def png(title: str, draw: Callable[[Axes, Theme], None], theme: Theme) -> bytes:
    """Returns one image."""
    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, facecolor=theme.ground, layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor(theme.ground)
    draw(axes, theme)
    axes.set_title(title, color=theme.ink, fontsize=11, loc="left")
    axes.tick_params(colors=theme.ink, which="both", labelsize=9)
    axes.tick_params(which="minor", labelsize=7)
    axes.xaxis.label.set_color(theme.ink)
    axes.yaxis.label.set_color(theme.ink)
    axes.grid(color=theme.faint, linewidth=0.6, which="major")
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_color(theme.faint)
    packed = io.BytesIO()
    figure.legend(
        loc="outside lower center", ncols=4, fontsize=8, labelcolor=theme.ink, facecolor=theme.ground, frameon=False
    )
    figure.savefig(packed, format="png", facecolor=theme.ground)
    return packed.getvalue()
