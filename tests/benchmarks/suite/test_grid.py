"""The cells of a run."""

from __future__ import annotations

from collections import Counter

from benchmarks.suite.cells import SIZES, TASKS, Grid, cells
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.workloads.table import TITLES

EVERYTHING = Grid(list(SIDES), list(TITLES), SIZES, TASKS, SIZES, [2])


def test_every_cell_is_there_once():
    found = cells(EVERYTHING)

    assert [key for key, count in Counter(cell.key for cell in found).items() if count > 1] == []
    assert {cell.side for cell in found} == set(SIDES)
    assert {cell.workload for cell in found} == set(TITLES)


def test_rates_come_before_the_latencies_that_need_them():
    kinds = [cell.kind for cell in cells(EVERYTHING)]

    assert kinds == sorted(kinds, reverse=True)


def test_every_latency_has_its_peak():
    found = cells(EVERYTHING)
    rates = {(c.side, c.workload, c.tuples, c.tasks) for c in found if c.kind == "rate"}

    assert {(c.side, c.workload, c.tuples, c.tasks) for c in found if c.kind == "latency"} <= rates


def test_a_side_without_tasks_is_measured_once():
    assert {cell.tasks for cell in cells(EVERYTHING) if cell.side == "redis_pipeline"} == {1}
    assert {cell.tasks for cell in cells(EVERYTHING) if cell.side == "txbatch"} == set(TASKS)


def test_a_side_is_asked_only_for_what_it_can_do():
    assert {cell.workload for cell in cells(EVERYTHING) if cell.side == "bytewax"} == {"word_count"}
    assert {cell.side for cell in cells(EVERYTHING) if cell.kind == "latency"}.isdisjoint({"bytewax", "spark_sql"})
