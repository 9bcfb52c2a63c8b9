"""Rounds alternate, resume, keep to their budget, and survive a side that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness import MeasurementError
from benchmarks.suite.cells import Assignment, Cell, Measurement
from benchmarks.suite.results_file import Results
from benchmarks.suite.rounds import Plan, left_out, missing, run_rounds

OURS = Cell("rate", "txbatch", "word_count", 100, 2)
THEIRS = Cell("rate", "foreach_batch_best", "word_count", 100, 2)
WAIT = replace(OURS, kind="latency")
PLAN = Plan(rounds=2, corpus="corpus", work_dir="work", seconds=10.0, warm_up_s=4.0)


class FakeMachine:
    """Answers measurements by cell; each takes the same time on its clock."""

    def __init__(self, takes_s: float = 20.0) -> None:
        self.now_s, self.takes_s = 1000.0, takes_s
        self.asked: list[Assignment] = []
        self.broken: set[Cell] = set()
        self.inexact: set[Cell] = set()
        self.told: list[str] = []

    def measure(self, assignment: Assignment) -> Measurement:
        self.now_s += self.takes_s
        self.asked.append(assignment)
        if assignment.cell in self.broken:
            raise MeasurementError("ended with exit code 1:\nMemoryError: too small")
        rate = 100 + len(self.asked)
        return Measurement(rate * 10, rate * 1000, 10.0, assignment.cell not in self.inexact)

    def begins(self, cell: Cell, number: int, count: int) -> None:
        self.told.append(f"{number}/{count} {cell.side}")

    def ended(self, cell: Cell, outcome: Measurement | str) -> None:
        self.told.append("failed" if isinstance(outcome, str) else "measured")

    def run(self, cells: list[Cell], results: Results, plan: Plan = PLAN) -> list[Cell]:
        return run_rounds(cells, results, plan, measure=self.measure, watcher=self, clock=lambda: self.now_s)


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results.json", {}, {})


def test_sides_alternate_and_every_other_round_goes_backwards(machine, results):
    machine.run([OURS, THEIRS], results)

    assert [a.cell.side for a in machine.asked] == ["txbatch", "foreach_batch_best", "foreach_batch_best", "txbatch"]
    assert machine.told[:3] == ["1/4 txbatch", "measured", "2/4 foreach_batch_best"]


def test_what_was_measured_is_not_measured_again(machine, results):
    machine.run([OURS], results)
    again = FakeMachine()

    again.run([OURS, THEIRS], Results.read(results.path))

    assert [a.cell for a in again.asked] == [THEIRS, THEIRS]


def test_a_run_that_stops_in_the_middle_has_kept_what_it_measured(machine: FakeMachine, results: Results) -> None:
    def stop_at_the_third(assignment: Assignment) -> Measurement:
        if len(machine.asked) == 2:
            raise KeyboardInterrupt
        return machine.measure(assignment)

    with pytest.raises(KeyboardInterrupt):
        run_rounds([OURS, THEIRS], results, PLAN, measure=stop_at_the_third, watcher=machine, clock=lambda: 0.0)

    assert missing([OURS, THEIRS], Results.read(results.path), 2) == [THEIRS, OURS]


def test_latency_is_measured_last_at_half_the_median_peak_the_same_in_all_rounds(machine, results):
    machine.run([WAIT, OURS], results)

    assert [(a.cell.kind, a.arrivals_per_s) for a in machine.asked] == [
        ("rate", 0.0),
        ("rate", 0.0),
        ("latency", 50.75),
        ("latency", 50.75),
    ]


def test_latency_without_a_peak_is_not_guessed(machine, results):
    machine.run([WAIT], results)

    assert machine.asked == []
    assert list(left_out(results)) == [f"{WAIT.key}: its peak is not known, because its rate was not measured"]


def test_nothing_is_begun_that_would_end_after_the_budget(machine, results):
    rest = machine.run([OURS, THEIRS], results, replace(PLAN, budget_s=59.0))

    assert len(machine.asked) == 2
    assert rest == [THEIRS, OURS]


def test_the_budget_goes_by_the_slowest_measurement_so_far(results):
    slow = FakeMachine(takes_s=45.0)

    assert len(slow.run([OURS, THEIRS], results, replace(PLAN, budget_s=85.0))) == 3


def test_a_side_that_fails_is_left_out_of_further_rounds_and_tried_again_by_the_next_run(machine, results):
    machine.broken = {THEIRS}
    machine.run([OURS, THEIRS], results)
    assert [a.cell for a in machine.asked] == [OURS, THEIRS, OURS]
    assert list(left_out(results)) == [f"{THEIRS.key}: MemoryError: too small"]

    machine.broken = set()
    machine.run([OURS, THEIRS], results)

    assert len(results.of(THEIRS).rounds) == 2
    assert list(left_out(results)) == []


def test_a_wrong_answer_is_no_figure(machine, results):
    machine.inexact = {OURS}
    machine.run([OURS], results)

    assert results.of(OURS).rounds == []
    assert "something else than an independent count" in results.of(OURS).failure
