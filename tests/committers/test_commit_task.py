"""One commit task over a group: in txid order, state open in `finish_batch` only, up to the first failure."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from committers.committer import ICommitter
from committers.committer_executor import CommitTask, RefusingReader
from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import BaseBatchBolt, FinishedCallback, TimeoutCallback
from coordinated_bolt.transport.blocks import Inbox
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from state import HashState
from state.attempt import TransactionAttempt
from state.commits import packed_writes
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.errors import FailedException
from state.values.state_kind import StateKind, ValueType
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wire import alone, arrived
from tests.support.tasks.wirings import RecordingBolt, Sent, attempt, wire

A1, A2, A3 = attempt(1), attempt(2), attempt(3)


class Store(BaseBatchBolt, ICommitter):
    """Adds what it is sent to the field `sum`, and tells what it saw; "early" and "raise" misbehave."""

    seen: ClassVar[list[Any]] = []
    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.values = []
        Store.seen.append(("prepare", attempt.txid))

    def execute(self, tup):
        Store.seen.append(("execute", self.attempt.txid))
        if tup[0] == "early":
            self.counts.increment("sum")
        self.values.append(tup[0])

    def finish_batch(self):
        Store.seen.append(("finish_batch", self.attempt.txid, self.counts.get("sum")))
        for value in self.values:
            if value == "raise":
                raise FailedException("not this one")
            self.counts.increment("sum", value)
            self.collector.emit([value])

    def cleanup(self):
        Store.seen.append(("cleanup", self.attempt.txid))


@pytest.fixture(autouse=True)
def seen():
    Store.seen.clear()
    yield Store.seen
    Store.seen.clear()


class Task:
    """A commit task with what source task 1 sends it."""

    def __init__(self, bolt=None, *, needs_id=True):
        self.wiring = wire(bolt or Store(), targets=(21,), needs_id=needs_id, component_id="store")
        self.frames = Sent()
        self.sent = Sent()
        self.store: Any = MemoryStore()
        self.edges: dict[TransactionAttempt, int] = {}

    def feed(self, of, *values):
        emitter = wire(RecordingBolt(), task_id=1, upstream=(), targets=(10,))
        outbox = attempt_outbox(emitter, of, self.frames.carrier)
        for value in values:
            AttemptCollector(emitter, of, outbox).emit([value])
        self.edges[of] = outbox.close().get(10, 0)
        return self

    def run(self, *attempts, composed=False):
        inbox = Inbox([alone(frame, attempts) for frame in self.frames], WaveAttempts(attempts))
        return CommitTask(self.wiring, self.store, self.sent.carrier).run_group(attempts, inbox, composed=composed)


def added(**fields):
    return WriteSet({"counts": StateWrites(StateKind.HASH, ValueType.INT, increments=dict[Any, Any](fields))})


def unpacked(write_sets: list[WriteSet]) -> list[WriteSet]:
    """The same changes, as a task has made them."""
    return [
        WriteSet({name: packed_writes.unpacked(writes) for name, writes in each.states.items()}) for each in write_sets
    ]


def test_attempts_run_in_order_each_with_an_instance_of_its_own(seen):
    report = Task().feed(A1, 5).feed(A2).feed(A3, 7).run(A1, A2, A3)
    assert [call[:2] for call in seen] == [
        (what, txid)
        for txid in (1, 2, 3)
        for what in ("prepare", "execute", "finish_batch", "cleanup")
        if (what, txid) != ("execute", 2)
    ]
    assert [result.failure for result in report.results] == [None] * 3
    assert unpacked(report.write_sets) == [added(sum=5), WriteSet(), added(sum=7)]
    assert list(report.write_sets[1].states) == []


def test_reads_see_committed_state_and_the_tasks_own_earlier_writes(seen):
    task = Task().feed(A1, 5).feed(A2, 7).feed(A3)
    task.store.states["counts"] = {"sum": 100}
    report = task.run(A1, A2, A3)
    assert [call[2] for call in seen if call[0] == "finish_batch"] == [100, 105, 112]
    assert [result.reads for result in report.results] == [[["counts", "sum"]]] * 3


def test_a_task_that_may_not_read_fails_at_the_first_read_and_reports_it():
    task = Task().feed(A1, 5).feed(A2, 7)
    task.store = RefusingReader()
    report = task.run(A1, A2)
    (result,) = report.results
    assert result.failure.kind is FailureKind.FAILED
    assert result.failure.text == "FailedException: state 'counts' cannot be read before the commit phase"
    assert result.reads == [["counts", "sum"]]


class Swallowing(Store):
    """Goes on without what it could not read."""

    def finish_batch(self):
        try:
            self.counts.get("sum")
        except Exception:  # noqa: BLE001 - what users do
            self.counts.put("sum", 1)


def test_a_refused_read_is_reported_even_if_user_code_goes_on():
    task = Task(Swallowing()).feed(A1, 5)
    task.store = RefusingReader()
    (result,) = task.run(A1).results
    assert (result.failure, result.reads) == (None, [["counts", "sum"]])


@pytest.mark.parametrize("composed", [True, False])
def test_the_first_failure_ends_the_report_and_its_writes_are_discarded(composed, seen):
    report = Task().feed(A1, 5).feed(A2, 7, "raise").feed(A3, 9).run(A1, A2, A3, composed=composed)
    assert [result.failure and result.failure.text for result in report.results] == [
        None,
        "FailedException: not this one",
    ]
    assert (report.composed, report.results.good_count()) == (composed, 1)
    assert unpacked(report.write_sets) == [added(sum=5)]
    assert {txid for _, txid, *_ in seen} == {1, 2}
    assert seen[-1] == ("cleanup", 2)


def test_state_is_closed_while_tuples_are_executed():
    (result,) = Task().feed(A1, "early").run(A1).results
    assert result.failure.kind is FailureKind.USER
    assert "state 'counts' is open only in finish_batch" in result.failure.text


def test_a_read_that_comes_too_late_is_a_replay():
    task = Task().feed(A2, 5)
    (result,) = task.run(A2).results
    assert result.failure.kind is FailureKind.UNANSWERED
    assert result.failure.text.startswith("StaleReadError: state 'counts' is at txid 0, expected 1")


def test_no_committer_runs_before_its_id(seen):
    """The commit phase of txid 1 alone leaves 2 and 3 untouched, though their tuples are there."""
    task = Task().feed(A1, 5).feed(A2, 7).feed(A3, 9)
    task.run(A1)
    assert {txid for _, txid, *_ in seen} == {1}


def test_an_attempt_whose_frames_are_missing_is_a_failure():
    report = Task().feed(A1, 5).run(A1, A2)
    assert report.results[1].failure.text == "task 1 sent 0 tuples and no report"
    assert report.results[1].failure.kind is FailureKind.INCOMPLETE


def test_the_edges_of_a_result_cancel_what_was_sent_to_the_task_and_hold_what_it_sends():
    task = Task().feed(A1, 5, 7)
    (result,) = task.run(A1).results
    below = wire(RecordingBolt(), task_id=21, upstream=(10,))
    assert result.edges != task.edges[A1]
    read_below = BatchTask(below, CoordinatedBolt(below, below.outboxes(Sent().carrier))).run(
        A1, arrived(A1, task.sent.to(21))
    )
    assert read_below is not None
    assert read_below.failure is None
    assert result.edges == task.edges[A1] ^ read_below.edges


class StatelessBelow(RecordingBolt):
    """No committer, but fed by one: it runs in the commit phase and needs no ID."""


@pytest.mark.case(id="P-04")
def test_a_bolt_that_is_not_a_committer_runs_in_the_commit_phase_without_an_id():
    report = Task(StatelessBelow(), needs_id=False).feed(A1, 5).run(A1)
    assert [result.failure for result in report.results] == [None]
    assert unpacked(report.write_sets) == [WriteSet()]
    assert report.results[0].counters == {"finished": 1}


def test_running_a_group_again_gives_the_same_report():
    task = Task().feed(A1, 5).feed(A2, 7).feed(A3, "raise")
    assert task.run(A1, A2, A3) == task.run(A1, A2, A3)


class Told(Store, FinishedCallback, TimeoutCallback):
    def finished_id(self, attempt):
        Store.seen.append(("finished_id", attempt.txid, self.counts.get("sum")))
        self.counts.increment("finished")

    def timeout_id(self, attempt):
        Store.seen.append(("timeout_id", attempt.txid))


def test_state_is_open_in_finished_id_as_in_finish_batch(seen):
    report = Task(Told()).feed(A1, 5).run(A1)
    assert unpacked(report.write_sets) == [added(sum=5, finished=1)]
    assert ("finished_id", 1, 5) in seen
