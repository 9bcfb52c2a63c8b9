"""Says on standard error what is being measured, what it came to, and how long the rest takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TextIO

from benchmarks.suite.cells import Cell, Kind, Measurement
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.workloads.table import TITLES
from state.printable import counted


def described(cell: Cell) -> str:
    """Returns a cell's name for people."""
    window = f", window {cell.window}" if cell.window else ""
    size = "1 tuple" if cell.tuples == 1 else f"{cell.tuples:,} tuples"
    return (
        f"{SIDES[cell.side].title}; {TITLES[cell.workload]}, {size} a transaction, "
        f"{counted(cell.tasks, 'task')}{window}{'; latency' if cell.kind == Kind.LATENCY.value else ''}"
    )


def duration(seconds: float) -> str:
    """Returns a time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Progress:
    """The progress display: one line a measurement, its result added when it ends.

    Args:
        out: where to write.
        clock: seconds, monotonic.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        self._out, self._clock = out, clock
        self._started_s = clock()
        self._number, self._count = 0, 0

    def begins(self, cell: Cell, number: int, count: int) -> None:
        """Shows what is being measured."""
        self._number, self._count = number, count
        self._out.write(f"[{number:>{len(str(count))}}/{count}] {described(cell)} ... ")
        self._out.flush()

    def ended(self, cell: Cell, outcome: Measurement | str) -> None:
        """Shows the result, or why there is none."""
        if isinstance(outcome, str):
            self._out.write(f"failed: {outcome}\n")
        else:
            left_s = (self._clock() - self._started_s) / self._number * (self._count - self._number)
            rest = f", about {duration(left_s)} left" if self._number < self._count else ""
            self._out.write(f"{_result(outcome)} (load {os.getloadavg()[0]:.1f}{rest})\n")
        self._out.flush()


def _result(found: Measurement) -> str:
    if found.latencies_ms:
        return f"p50 {found.latencies_ms['p50']:,.0f} ms, p99 {found.latencies_ms['p99']:,.0f} ms"
    return f"{found.transactions_per_s:,.1f} tx/s"
