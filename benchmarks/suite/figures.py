"""What the rounds of a cell come to: medians, and how far the rounds lie apart. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from benchmarks.harness import Spread
from benchmarks.suite.cells import Cell, Kind
from benchmarks.suite.results_file import CellResults

ENOUGH_ROUNDS = 5


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
