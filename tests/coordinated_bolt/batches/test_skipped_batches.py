"""Bolts that skip empty batches: nothing of theirs is called without tuples, and everybody hears the same as ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committers.committer import ICommitter
from committers.committer_executor import CommitTask
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.blocks import Arrived, BlockWriter, Inbox
from coordinated_bolt.transport.frames import Frame, FrameKind, seal_frame
from coordinated_bolt.transport.outbox import Sent as Amount
from coordinated_bolt.transport.wave_attempts import WaveAttempts
from coordinated_bolt.watching.metrics import TaskMetrics
from state import HashState
from state.codec import pack, unpack
from tests.support.stores.memory_store import MemoryStore
from tests.support.tasks.wirings import Calls, RecordingBolt, Sent, attempt, wire
from tests.support.topologies.components import Commit, build, plan

BOTH = frozenset({1, 2})
"""The tasks upstream."""


class Skipping(RecordingBolt):
    output_fields = ("value",)
    skips_empty_batches = True


class Store(BaseBatchBolt, ICommitter):
    """Counts tuples."""

    skips_empty_batches = True
    counts = HashState("counts")

    def prepare(self, conf, context, collector, attempt):
        self.number = 0

    def execute(self, tup):
        self.number += 1

    def finish_batch(self):
        self.counts.increment("all", self.number)


def task_of(bolt, *, skips=True):
    """A task with two upstream and two downstream, and what it has sent."""
    sent = Sent()
    wiring = replace(wire(bolt, task_id=10, upstream=(1, 2), targets=(20, 21)), skips_empty_batches=skips)
    return BatchTask(wiring, CoordinatedBolt(wiring, wiring.outboxes(sent.carrier))), sent


def reported(sent):
    return [(frame.target, frame.kind, unpack(frame.payload)) for frame in sent]


@pytest.mark.parametrize("arrives", ["at once", "report by report"])
def test_a_bolt_that_skips_is_not_called_for_a_batch_without_tuples_and_reports_its_zeros(arrives):
    task, sent = task_of(Skipping())
    if arrives == "at once":
        assert task.run(attempt(7), Arrived(reporters=BOTH)) is None
    else:
        for sender in sorted(BOTH):
            task.receive(Frame(attempt(7), sender, 0, 10, FrameKind.COORD, pack(0)))
        assert task.end(attempt(7)) == AttemptResult(attempt(7), metrics={"bolt": TaskMetrics()})
    assert Calls.take() == []
    assert reported(sent) == [(20, FrameKind.COORD, 0), (21, FrameKind.COORD, 0)]


def test_a_bolt_that_does_not_skip_finishes_every_batch():
    task, sent = task_of(RecordingBolt(), skips=False)
    assert task.run(attempt(7), Arrived(reporters=BOTH)).metrics["bolt"].batches == 1
    assert [call for call, *_ in Calls.take()] == ["prepare", "finish_batch", "cleanup"]
    assert len(sent) == 2


@pytest.mark.parametrize(
    "arrived",
    [Arrived(reporters=frozenset({1})), Arrived(reporters=BOTH, counts={1: 2}), Arrived()],
    ids=["a report is missing", "tuples are missing", "nothing"],
)
def test_a_batch_that_is_not_whole_is_not_skipped_but_fails(arrived):
    task, sent = task_of(Skipping())
    failure = task.run(attempt(7), arrived).failure
    assert not failure.halts()
    assert reported(sent) == []


def test_a_report_that_differs_from_the_first_fails_a_batch_without_tuples():
    task, _ = task_of(Skipping())
    assert task.run(attempt(7), Arrived(reporters=BOTH, repeats=[(1, 3)])).failure is not None


def test_the_plan_tells_every_task_whether_its_bolt_skips():
    made = plan(build(("a", Skipping(), ["lines"], 2), ("store", Commit(), ["a"])))
    assert [wiring.skips_empty_batches for wiring in made.wirings.values()] == [False, True, True, False]


def commit_task(*, composed):
    wiring = replace(wire(Store(), task_id=10, upstream=(1,)), skips_empty_batches=True, needs_id=True)
    task = CommitTask(wiring, MemoryStore(), Sent().carrier)
    task.begin(1, composed=composed)
    return task


@pytest.mark.parametrize("composed", [True, False])
def test_a_committer_that_skips_does_not_write_what_it_wrote_for_the_batch_before(composed):
    task = commit_task(composed=composed)
    for txid, lines in ((1, 3), (2, 0), (3, 4)):
        row = [[0, [["line", number] for number in range(lines)]]] if lines else []
        if row:
            task.task.receive(Frame(attempt(txid), 1, 0, 10, FrameKind.REGULAR, pack(row)))
        task.task.receive(Frame(attempt(txid), 1, 0, 10, FrameKind.COORD, pack(lines)))
        task.task.id(attempt(txid))
        assert task.conclude(attempt(txid))
    assert written(task.report) == ([{"all": 7}] if composed else [{"all": 3}, {"all": 4}])
    assert len(task.report.write_sets) == (1 if composed else 3)


def written(report):
    return [sets.states["counts"].increments for sets in report.write_sets if sets.states]


def test_a_committer_that_skips_gives_a_good_verdict_on_every_batch_of_a_group():
    wave, blocks = WaveAttempts([attempt(1), attempt(2), attempt(3)]), []
    writer = BlockWriter(wave, lambda block: blocks.append(seal_frame(block)))
    for each, lines in zip(wave.attempts, (3, 0, 4), strict=True):
        if lines:
            rows = [[0, [["line", number] for number in range(lines)]]]
            writer.carry(each, 1, 10, sequence=0, payload=pack(rows))
        writer.report(each, 1, [10], {10: Amount(1, lines)})
    writer.flush()
    report = commit_task(composed=False).run_group(wave.attempts, Inbox(blocks, wave), composed=False)
    assert [(result.failure, result.metrics["bolt"].batches) for result in report.results] == [
        (None, 1),
        (None, 0),
        (None, 1),
    ]
    assert written(report) == [{"all": 3}, {"all": 4}]
    assert len(report.write_sets) == 3
