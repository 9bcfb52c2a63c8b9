"""What the rounds of a cell come to, and the tables of it, as rows of text for the terminal and for the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.harness import Spread, table
from benchmarks.suite.cells import Cell, Kind
from benchmarks.suite.results_file import CellResults
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.workloads.table import TITLES
from state.printable import counted

ENOUGH_ROUNDS = 5
BASE = "foreach_batch_best"
"""The side that ratios are to."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a cell.

    Attributes:
        cell: what was measured.
        per_s: transactions per second; for latency, those that arrived.
        latencies_ms: "p50", "p90", "p99", "max" -> milliseconds; empty for rates.
        processor_ms: processor time of all processes per transaction; None where nobody looked.
        load: highest load average after a round.
    """

    cell: Cell
    per_s: Spread
    latencies_ms: dict[str, Spread]
    processor_ms: Spread | None
    load: float


def figures(found: CellResults) -> Figures:
    """Returns the figures of a cell with at least one round."""
    measured = [entry.measurement for entry in found.rounds]
    processor = [1000 * sum(m.processor_s.values()) / m.transactions for m in measured if m.processor_s]
    names = measured[0].latencies_ms
    rates = [m.transactions_per_s for m in measured]
    return Figures(
        cell=found.cell,
        per_s=Spread.over([found.arrivals_per_s] if found.cell.kind == Kind.LATENCY.value else rates),
        latencies_ms={name: Spread.over([m.latencies_ms[name] for m in measured]) for name in names},
        processor_ms=Spread.over(processor) if processor else None,
        load=max(entry.load for entry in found.rounds),
    )


def all_figures(results: Iterable[CellResults]) -> dict[Cell, Figures]:
    """Returns cell -> figures of every cell that was measured."""
    return {found.cell: figures(found) for found in results if found.rounds}


def rate_cell(cell: Cell) -> Cell:
    """Returns the cell whose rate is the peak of a latency cell."""
    return replace(cell, kind=Kind.RATE.value)


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
