"""What the suite measures, as values that travel between processes as JSON, and which cells a run has. Pure.

A `Cell` is one place in the report's tables. An `Assignment` is one measurement of it, made by a process of its own,
which answers with a `Measurement`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Self, TypeVar

from benchmarks.suite.sides.table import SIDES


class Kind(Enum):
    """The question a cell answers."""

    RATE = "rate"
    """How many transactions a second, if the next one always waits?"""
    LATENCY = "latency"
    """How long does a transaction take that arrives at a fixed time, at half the peak rate?"""


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One side at one workload, size and number of tasks.

    Attributes:
        kind: value of a `Kind`.
        side: name in `sides.table`.
        workload: name in `workloads.table`.
        tuples: tuples of a transaction.
        tasks: threads of Spark and tasks of each component; for the other sides, processes.
        window: transactions in flight; 0 leaves it to the side.
    """

    kind: str
    side: str
    workload: str
    tuples: int
    tasks: int
    window: int = 0

    @property
    def key(self) -> str:
        """The cell's name in the results file."""
        window = f" window {self.window}" if self.window else ""
        return f"{self.kind} {self.side} {self.workload} {self.tuples}x{self.tasks}{window}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One measurement to make.

    Attributes:
        cell: what to measure.
        corpus: folder of the text.
        work_dir: folder for data, on a disk.
        seconds: how long to measure.
        warm_up_s: how long to work beforehand, unmeasured.
        arrivals_per_s: of transactions, for latency; 0 otherwise.
    """

    cell: Cell
    corpus: str
    work_dir: str
    seconds: float
    warm_up_s: float
    arrivals_per_s: float = 0.0

    def to_json(self) -> str:
        """Returns an argument for a process of its own."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Inverse of `to_json`."""
        fields = json.loads(text)
        return cls(**{**fields, "cell": Cell(**fields["cell"])})


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one process measured.

    Attributes:
        transactions: committed in the measured time.
        tuples: in them.
        seconds: the measured time.
        is_exact: whether all that the server holds equals an independent count.
        processor_s: role -> processor seconds in the measured time; empty where nobody looked.
        latencies_ms: "p50", "p90", "p99" and "max"; empty for rates.
        details: what only one side has.
    """

    transactions: int
    tuples: int
    seconds: float
    is_exact: bool
    processor_s: Mapping[str, float] = field(default_factory=dict)
    latencies_ms: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transactions_per_s(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds

    def to_json(self) -> str:
        """Returns one line for the parent process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Inverse of `dataclasses.asdict`."""
        return cls(**fields)


T = TypeVar("T")
SIZES = (20, 100, 1_000, 10_000, 1_000_000)
TASKS = (1, 2, 4)
LARGEST_LATENCY_SIZE = 10_000
"""Larger transactions arrive too rarely to tell a percentile."""
WORKLOAD_SIZES = (100, 1_000)
"""Sizes of the workloads other than the word count."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What to measure.

    Attributes:
        sides: names, in the order of measurement.
        workloads: names.
        sizes: tuples of a transaction.
        tasks: numbers of tasks.
        latency_sizes: sizes at which latency is measured, at every number of tasks in `latency_tasks`.
        latency_tasks: numbers of tasks at which latency is measured.
    """

    sides: Sequence[str]
    workloads: Sequence[str]
    sizes: Sequence[int]
    tasks: Sequence[int]
    latency_sizes: Sequence[int]
    latency_tasks: Sequence[int]


def cells(grid: Grid) -> list[Cell]:
    """Returns the cells, all rates before all latencies, which need them."""
    return [*_rates(grid), *_latencies(grid)]


def _rates(grid: Grid) -> Iterator[Cell]:
    for workload in grid.workloads:
        for size in grid.sizes if workload == "word_count" else _only(WORKLOAD_SIZES, grid.sizes):
            for tasks in grid.tasks:
                for side in grid.sides:
                    if workload in SIDES[side].workloads and (SIDES[side].uses_tasks or tasks == min(grid.tasks)):
                        yield Cell(Kind.RATE.value, side, workload, size, tasks if SIDES[side].uses_tasks else 1)


def _latencies(grid: Grid) -> Iterator[Cell]:
    if "word_count" not in grid.workloads:
        return
    for size in _only(grid.latency_sizes, [size for size in grid.sizes if size <= LARGEST_LATENCY_SIZE]):
        for tasks in _only(grid.latency_tasks, grid.tasks):
            for side in grid.sides:
                if SIDES[side].has_latency:
                    yield Cell(Kind.LATENCY.value, side, "word_count", size, tasks if SIDES[side].uses_tasks else 1)


def _only(wanted: Iterable[T], offered: Sequence[T]) -> list[T]:
    return [entry for entry in wanted if entry in offered]
