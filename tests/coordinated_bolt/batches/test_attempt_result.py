"""An attempt's record reaches the driver whole, whichever way it goes."""

from __future__ import annotations

from dataclasses import fields

import pytest

from coordinated_bolt.batches.attempt_reports import TaskReports
from coordinated_bolt.batches.attempt_result import SUMS, AttemptResult, ResultTable
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.watching.metrics import TaskMetrics
from state.attempt import TransactionAttempt
from state.codec import pack, unpack

ATTEMPT = TransactionAttempt(7, 1)
TASK, ACKER = 3, 9
FULL = AttemptResult(
    ATTEMPT,
    Failure(FailureKind.USER, "count", 0, "mine"),
    residue=5,
    metadata={"partition.0": [1, 2]},
    counters={"lines": 4},
    metrics={"count": TaskMetrics(batches=1)},
    began_from={"partition.0": 11},
    letters={TASK: [b"refused"]},
    edges=6,
    reads=[["counts", "word"]],
    **dict.fromkeys(SUMS, 3),
)


def reported(result: AttemptResult) -> AttemptResult:
    sent = TaskReports(TASK, ACKER)
    sent.add(0, result)
    read = TaskReports.from_payload(TASK, ACKER, sent.to_payload())
    (found,) = read.results
    found.edges ^= read.edge_of_cuts(found)
    return found


def sent(result: AttemptResult) -> AttemptResult:
    (found,) = ResultTable.from_wire(unpack(pack(ResultTable([result]).to_wire())))
    return found


def test_the_example_has_a_value_in_every_field() -> None:
    empty = AttemptResult(ATTEMPT)
    usual = [each.name for each in fields(AttemptResult) if getattr(FULL, each.name) == getattr(empty, each.name)]
    assert usual == ["attempt"]


@pytest.mark.parametrize("name", [each.name for each in fields(AttemptResult)])
def test_every_field_travels(name: str) -> None:
    assert getattr(sent(FULL), name) == getattr(FULL, name)
    assert getattr(reported(FULL), name) == getattr(FULL, name)


def test_counts_add_up_over_tasks() -> None:
    whole = AttemptResult(ATTEMPT)
    for _ in range(2):
        whole.add(sent(FULL))
    assert [getattr(whole, name) for name in SUMS] == [6] * len(SUMS)
