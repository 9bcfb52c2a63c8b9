"""A basic bolt in a transactional topology: one instance per attempt, which succeeds or fails as a whole."""

from __future__ import annotations

import pytest

from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import FinishedCallback, TimeoutCallback
from state.errors import FailedException
from tests.support.tasks.one_task import A, OneTask
from tests.support.tasks.wirings import Calls, attempt

B = attempt(2)


class Upper(BaseBasicBolt):
    """Passes every tuple on in capitals, and counts how many its instance has seen."""

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.seen = 0
        Calls.log.append(("prepare", dict(conf), context.task_count))

    def execute(self, tup, collector):
        self.seen += 1
        if tup[0] == "fail":
            raise FailedException("not this one")
        if tup[0] == "bug":
            raise ValueError("mine")
        Calls.log.append(("sent to", collector.emit([tup[0].upper()])))

    def cleanup(self):
        Calls.log.append(("cleanup", self.seen))


class Told(Upper, FinishedCallback, TimeoutCallback):
    """Emits what it has seen once it is told that the attempt is complete."""

    def __init__(self, raising=None):
        self.raising = raising

    def execute(self, tup, collector):
        super().execute(tup, collector)
        self.collector = collector

    def finished_id(self, attempt):
        Calls.log.append(("finished", attempt.txid))
        if self.raising is not None:
            raise self.raising
        self.collector.emit([f"{self.seen} in all"])

    def timeout_id(self, attempt):
        Calls.log.append(("timeout", attempt.txid))


def task_of(bolt):
    return OneTask(bolt, targets=(21,))


def test_it_emits_within_the_attempt_and_needs_no_acks():
    task = task_of(Upper())
    task.regular(1, "a", "b")
    assert task.finish(2).failure is None
    assert task.rows() == [["A"], ["B"]]
    assert {frame.attempt for frame in task.sent} == {A}
    assert Calls.take() == [("prepare", {"key": "value"}, 1), ("sent to", [21]), ("sent to", [21]), ("cleanup", 2)]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [("fail", FailureKind.FAILED, "FailedException: not this one"), ("bug", FailureKind.USER, "ValueError: mine")],
)
def test_what_it_raises_fails_the_attempt_with_the_tuple(value, kind, text):
    task = task_of(Upper())
    task.regular(1, "a", value, "c")
    failure = task.finish(3).failure
    assert (failure.kind, failure.tuple_text) == (kind, f"Tuple(source/default: value={value!r})")
    assert text in failure.text
    assert Calls.take()[-1] == ("cleanup", 2)


def test_being_told_that_the_attempt_is_complete_is_how_it_knows_and_it_may_still_emit():
    task = task_of(Told())
    task.regular(1, "a", "b")
    assert task.finish(2).failure is None
    assert task.rows() == [["A"], ["B"], ["2 in all"]]
    assert [name for name, *_ in Calls.take()] == ["prepare", "sent to", "sent to", "finished", "cleanup"]


def test_what_finished_id_raises_fails_the_attempt():
    task = task_of(Told(FailedException("after all")))
    task.regular(1, "a")
    failure = task.finish(1).failure
    assert (failure.kind, failure.text) == (FailureKind.FAILED, "FailedException: after all")
    assert [name for name, *_ in Calls.take()] == ["prepare", "sent to", "finished", "timeout", "cleanup"]


def test_an_attempt_that_ends_incomplete_is_told_before_the_cleanup():
    task = task_of(Told())
    task.regular(1, "a")
    failure = task.finish(5).failure
    assert failure.kind is FailureKind.INCOMPLETE
    assert [name for name, *_ in Calls.take()] == ["prepare", "sent to", "timeout", "cleanup"]
