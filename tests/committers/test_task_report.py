"""What a task reports of parts of a group, put together."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt
from state.commits.packed_writes import PackedWrites
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet, compose
from state.values.state_kind import StateKind, ValueType

Increments = dict[Any, int]

increments = st.dictionaries(st.sampled_from(["a", "b", "b\n", "é", ""]), st.integers(-(2**62), 2**62), max_size=4)


def attempt(txid: int) -> TransactionAttempt:
    return TransactionAttempt(txid, txid)


def written(added: Increments) -> WriteSet:
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments=dict(added))})


def result(txid: int, added: Increments) -> AttemptResult:
    """One in which whatever an attempt may have is there, or not."""
    metrics = TaskMetrics(executed={f"stream {len(added)}": txid}, batches=txid)
    counters, letters = ({"seen": txid}, {7: [b"letter"]}) if added else ({}, {})
    return AttemptResult(attempt(txid), metrics={"store": metrics}, edges=txid, counters=counters, letters=letters)


def report(first_txid: int, *parts: Increments, fails: bool = False, composed: bool = True) -> TaskReport:
    results = [result(first_txid + place, added) for place, added in enumerate(parts)]
    if fails:
        failure = Failure(FailureKind.FAILED, "store", 0, "no")
        results.append(AttemptResult(attempt(first_txid + len(parts)), failure))
    write_sets = [written(part) for part in parts]
    if composed:
        write_sets = [compose(write_sets)]
        write_sets[0].pack()
    return TaskReport(7, "store", ResultTable(results), write_sets, composed)


def amounts(report: TaskReport) -> list[Increments]:
    return [dict(w.state("counts", StateKind.HASH, ValueType.INT).increments) for w in report.write_sets]


@given(st.lists(increments, min_size=2, max_size=5))
def test_parts_put_together_are_what_the_whole_would_have_been(parts: list[Increments]):
    whole = report(1, *parts)
    for cut in range(1, len(parts)):
        together = report(1, *parts[:cut]).then(report(cut + 1, *parts[cut:]))
        assert list(together.results) == list(whole.results)
        assert amounts(together) == amounts(whole)


def test_what_is_put_together_is_packed_for_the_server():
    together = report(1, {"a": 1}).then(report(2, {"a": 2, "b": 3}))
    (write_set,) = together.write_sets
    assert isinstance(write_set.states["counts"], PackedWrites)
    assert dict(write_set.states["counts"].items()) == {"a": 3, "b": 3}


def test_nothing_follows_an_attempt_that_failed():
    failed = report(1, {"a": 1}, fails=True)
    assert failed.then(report(3, {"a": 2})) == failed


def test_without_composing_each_attempt_keeps_its_changes():
    together = report(1, {"a": 1}, composed=False).then(report(2, {"a": 2}, composed=False))
    assert amounts(together) == [{"a": 1}, {"a": 2}]
    assert together.results.good_count() == 2
