"""The sides: what each needs, when transactions arrive, and how they count what they did."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

from benchmarks.corpus import build_corpus
from benchmarks.suite.cells import Assignment, Cell
from benchmarks.suite.sides import foreach_batch, spark_batch
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.sides.txbatch import Arrivals
from benchmarks.suite.text_input import Lines
from benchmarks.suite.timing import ArrivalSchedule

CELL = Cell("latency", "txbatch", "word_count", 100, 2)
ASSIGNMENT = Assignment(CELL, "corpus", "work", seconds=2.0, warm_up_s=5.0, arrivals_per_s=10.0)


@pytest.mark.parametrize("name", SIDES)
def test_every_side_has_its_module(name):
    assert find_spec(SIDES[name].module) is not None


def test_a_side_whose_requirement_is_missing_says_what_to_do():
    side = replace(SIDES["bytewax"], requires="no_such_module.at_all", remedy="pip install it")

    assert side.missing() == "module 'no_such_module.at_all' is not here: pip install it"
    assert SIDES["txbatch"].missing() is None


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def test_transactions_are_free_during_the_warm_up_then_wait_until_all_are_committed_then_for_their_arrival(clock):
    committed = 0
    arrivals = Arrivals(ASSIGNMENT, lambda: committed, clock)
    for _ in range(30):
        assert arrivals.has_next()
        arrivals.took_one()

    clock.now_s = 105.0
    assert not arrivals.has_next(), "30 are in flight"

    committed, clock.now_s = 30, 106.0
    assert arrivals.has_next(), "the first arrives as the schedule begins"
    arrivals.took_one()
    assert not arrivals.has_next()
    assert arrivals.schedule == ArrivalSchedule(start_s=106.0, per_s=10.0, count=20)
    assert arrivals.warm_ups == 30

    clock.now_s = 106.35
    taken = 0
    while arrivals.has_next():
        arrivals.took_one()
        taken += 1
    assert taken == 3, "those of 106.1, 106.2 and 106.3"


def test_arrivals_end_with_the_last_one(clock):
    arrivals = Arrivals(ASSIGNMENT, lambda: 0, clock)
    arrivals.has_next()
    clock.now_s = 105.0
    assert not arrivals.have_ended()

    while not arrivals.have_ended():
        assert arrivals.has_next() or clock.now_s < 108
        if arrivals.has_next():
            arrivals.took_one()
        clock.now_s += 0.05

    assert clock.now_s == pytest.approx(105 + 1.9 + 0.05)
    assert not arrivals.has_next()


def test_the_control_has_as_many_micro_batches_as_fit_and_never_too_few(tmp_path):
    corpus = build_corpus(tmp_path / "corpus", 0.02)
    cell = Cell("rate", "foreach_batch_plain", "word_count", 20, 4)
    small = foreach_batch.control_case(Assignment(cell, corpus.folder, str(tmp_path), 10.0, 5.0))
    large = foreach_batch.control_case(
        Assignment(replace(cell, tuples=1_000_000), corpus.folder, str(tmp_path), 10.0, 5.0)
    )

    assert (small.tuning, small.master, small.files, small.warm_up, small.batches) == ("plain", "local[4]", 1, 90, 180)
    assert (large.files, large.warm_up, large.batches) == (4, 6, 3)
    assert (small.corpus, large.corpus) == (corpus.folder, str(tmp_path / "corpus-1000000"))


def test_jobs_are_counted_as_often_as_they_ran(tmp_path):
    (tmp_path / "a").write_text("to be\n")
    (tmp_path / "b").write_text("or be\n")

    assert spark_batch.expected([[str(tmp_path / "a")], [str(tmp_path / "b")]], [2, 1]) == {"to": 2, "be": 3, "or": 1}


def test_bytewax_processes_are_counted_together(tmp_path):
    bytewax_flow = pytest.importorskip("benchmarks.suite.sides.bytewax_flow", reason="Bytewax is not here")
    corpus = build_corpus(tmp_path / "corpus", 0.02)
    cell = Cell("rate", "bytewax", "word_count", 100, 2)
    assignment = Assignment(cell, corpus.folder, "work", seconds=1.0, warm_up_s=1.0)
    committed = [(0, 10.0), (2, 11.2), (4, 12.5), (1, 10.1), (3, 11.6)]
    words = [word for line in Lines.of(corpus).first(500) for word in line.split()]
    stored = {word: words.count(word) for word in set(words)}

    found = bytewax_flow.summarized(assignment, committed, stored)

    assert (found.transactions, found.tuples, found.is_exact) == (2, 200, True)
    assert found.seconds == pytest.approx(1.3)
    assert not bytewax_flow.summarized(assignment, committed, {**stored, words[0]: 0}).is_exact
