"""The report's tables, as rows of text: for the terminal and for the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.harness import Spread, table
from benchmarks.suite.cells import Cell, Kind
from benchmarks.suite.figures import Figures
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.workloads.table import TITLES
from state.printable import counted

BASE = "foreach_batch_best"
"""The side that ratios are to."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: one line.
        headings: of the columns; the first is text, the others are figures.
        rows: a text for each column.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def plain(self) -> str:
        """Returns the table for a terminal."""
        return f"{self.title}\n\n{table(self.headings, self.rows)}"


def tables(found: Mapping[Cell, Figures]) -> list[Table]:
    """Returns the rates of each workload and number of tasks, then the latencies."""
    rates = [entry for entry in found.values() if entry.cell.kind == Kind.RATE.value]
    latencies = [entry for entry in found.values() if entry.cell.kind == Kind.LATENCY.value]
    shown = [
        _rates([entry for entry in rates if entry.cell.workload == workload and _has(entry, tasks)], workload, tasks)
        for workload in TITLES
        for tasks in _tasks(entry for entry in rates if entry.cell.workload == workload)
    ]
    shown += [_latencies([entry for entry in latencies if _has(entry, tasks)], tasks) for tasks in _tasks(latencies)]
    return shown


def _tasks(entries: Iterable[Figures]) -> list[int]:
    """Returns the numbers of tasks of what uses tasks; a side that does not is in all tables."""
    entries = list(entries)
    several = {entry.cell.tasks for entry in entries if SIDES[entry.cell.side].uses_tasks}
    return sorted(several or {entry.cell.tasks for entry in entries})


def _has(entry: Figures, tasks: int) -> bool:
    return entry.cell.tasks == tasks or not SIDES[entry.cell.side].uses_tasks


def _ordered(entries: Iterable[Figures]) -> list[Figures]:
    sides = list(SIDES)
    return sorted(entries, key=lambda entry: (entry.cell.tuples, sides.index(entry.cell.side), entry.cell.window))


def _name(cell: Cell) -> str:
    return f"{SIDES[cell.side].title}{f', window {cell.window}' if cell.window else ''}"


def _rates(entries: Sequence[Figures], workload: str, tasks: int) -> Table:
    base = {entry.cell.tuples: entry.per_s.median for entry in entries if entry.cell.side == BASE}
    rows = [
        [
            _name(entry.cell),
            f"{entry.cell.tuples:,}",
            number(entry.per_s.median),
            spread(entry.per_s),
            number(entry.per_s.median * entry.cell.tuples),
            f"{entry.per_s.median / base[entry.cell.tuples]:.2f}" if entry.cell.tuples in base else "-",
            number(entry.processor_ms.median) if entry.processor_ms else "-",
            str(entry.per_s.rounds),
            f"{entry.load:.1f}",
        ]
        for entry in _ordered(entries)
    ]
    headings = ("side", "tuples", "tx/s", "spread", "tuples/s", "x foreachBatch", "CPU ms/tx", "rounds", "load")
    return Table(f"Peak rate: {TITLES[workload]}, {counted(tasks, 'task')}", headings, rows)


def _latencies(entries: Sequence[Figures], tasks: int) -> Table:
    rows = [
        [
            _name(entry.cell),
            f"{entry.cell.tuples:,}",
            number(entry.per_s.median),
            *(number(entry.latencies_ms[name].median) for name in ("p50", "p90", "p99", "max")),
            spread(entry.latencies_ms["p99"]),
            str(entry.latencies_ms["p50"].rounds),
            f"{entry.load:.1f}",
        ]
        for entry in _ordered(entries)
    ]
    headings = ("side", "tuples", "arrivals/s", "p50 ms", "p90", "p99", "max", "p99 spread", "rounds", "load")
    return Table(f"Latency at half the peak: word count, {counted(tasks, 'task')}", headings, rows)


def number(value: float) -> str:
    """Returns a figure with three significant digits or more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(found: Spread) -> str:
    """Returns the lowest and the highest round; a dash if there was only one."""
    return f"{number(found.low)}-{number(found.high)}" if found.rounds > 1 else "-"
