"""Measures cell after cell, round after round, and keeps what was measured.

The sides alternate within a round, and every other round goes backwards, so that a machine that slows down slows all.
A cell that has its rounds already is not measured again.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.harness import MeasurementError, in_own_process
from benchmarks.suite.cells import Assignment, Cell, Kind, Measurement
from benchmarks.suite.results_file import CellResults, Results, Round
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.tables import figures, rate_cell

HALF = 0.5
START_UP_S = 6.0
"""About what starting and checking a process takes, apart from the warm-up and what is measured."""


class Watcher(Protocol):
    """Told of progress."""

    def begins(self, cell: Cell, number: int, count: int) -> None:
        """A measurement begins: the `number`-th of `count`."""

    def ended(self, cell: Cell, outcome: Measurement | str) -> None:
        """It has ended: with what was measured, or with why it failed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to measure.

    Attributes:
        rounds: of each cell.
        corpus: folder of the text.
        work_dir: folder for data.
        seconds: length of a measurement.
        warm_up_s: length of the warm-up.
        budget_s: no measurement is begun that would probably end later than this; None for no limit.
    """

    rounds: int
    corpus: str
    work_dir: str
    seconds: float
    warm_up_s: float
    budget_s: float | None = None

    def expected_s(self) -> float:
        """Returns about how long one measurement takes, with its process."""
        return START_UP_S + self.warm_up_s + self.seconds


def measure_in_own_process(assignment: Assignment) -> Measurement:
    """Makes one measurement.

    Raises:
        MeasurementError: the process failed or took too long.
    """
    return Measurement(**in_own_process(SIDES[assignment.cell.side].module, assignment.to_json()))


def missing(cells: Sequence[Cell], results: Results, rounds: int) -> list[Cell]:
    """Returns the cells that have yet to be measured, once for each missing round, in order."""
    found: list[Cell] = []
    for kind in Kind:
        chosen = [cell for cell in cells if cell.kind == kind.value]
        for number in range(rounds):
            ordered = chosen if number % 2 == 0 else chosen[::-1]
            found += [cell for cell in ordered if len(results.of(cell).rounds) <= number]
    return found


def run_rounds(
    cells: Sequence[Cell],
    results: Results,
    plan: Plan,
    *,
    measure: Callable[[Assignment], Measurement],
    watcher: Watcher,
    clock: Callable[[], float],
) -> list[Cell]:
    """Measures what is missing.

    Args:
        cells: all cells of the run.
        results: what is known; saved after every measurement.
        plan: how to measure.
        measure: makes one measurement.
        watcher: told of progress.
        clock: seconds, monotonic.

    Returns:
        The measurements that did not fit into the budget.
    """
    todo = missing(cells, results, plan.rounds)
    started_s = clock()
    failed: set[Cell] = set()
    longest_s = plan.expected_s()
    for number, cell in enumerate(todo, start=1):
        began_s = clock()
        if plan.budget_s is not None and began_s - started_s + longest_s > plan.budget_s:
            return todo[number - 1 :]
        if cell in failed:
            continue  # it would fail in the next round, too
        watcher.begins(cell, number, len(todo))
        outcome = _measured(cell, results, plan, measure)
        watcher.ended(cell, outcome)
        longest_s = max(longest_s, clock() - began_s)
        if isinstance(outcome, str):
            failed.add(cell)
    return []


def _measured(
    cell: Cell, results: Results, plan: Plan, measure: Callable[[Assignment], Measurement]
) -> Measurement | str:
    """Makes one measurement and keeps it, or why it failed."""
    found = results.of(cell)
    try:
        per_s = _arrivals(found, results)
        outcome = measure(Assignment(cell, plan.corpus, plan.work_dir, plan.seconds, plan.warm_up_s, per_s))
        if not outcome.is_exact:
            raise MeasurementError("the server holds something else than an independent count")
    except MeasurementError as error:
        found.failure = str(error)
        results.save()
        return found.failure
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    found.rounds.append(Round(outcome, os.getloadavg()[0], now))
    found.arrivals_per_s, found.failure = per_s, ""
    results.save()
    return outcome


def _arrivals(found: CellResults, results: Results) -> float:
    """Returns the arrival rate of a cell: half its side's peak, and the same in all rounds; 0 for a rate."""
    if found.cell.kind == Kind.RATE.value or found.arrivals_per_s:
        return found.arrivals_per_s
    peak = results.of(rate_cell(found.cell))
    if not peak.rounds:
        raise MeasurementError("its peak is not known, because its rate was not measured")
    return HALF * figures(peak).per_s.median


def left_out(results: Results) -> Iterator[str]:
    """Yields a sentence for every cell whose last attempt failed."""
    for found in results:
        if found.failure:
            yield f"{found.cell.key}: {found.failure.splitlines()[-1]}"
