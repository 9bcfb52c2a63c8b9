"""Which cells a run of the suite has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.suite.cells import Cell, Kind
from benchmarks.suite.sides.table import SIDES

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
