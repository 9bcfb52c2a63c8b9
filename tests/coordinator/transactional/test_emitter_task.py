"""Emitter tasks: exact replay from what is stored, new cuts chained within a wave, failures that last."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinated_bolt.components.task_hook import ITaskHook
from coordinated_bolt.transport.edges import batch_edge
from coordinated_bolt.transport.frames import FrameKind
from coordinated_bolt.watching.metrics import TaskMetrics
from coordinator import IPartitionedTransactionalSpout, ITransactionalSpout, PartitionedEmitter, SpoutEmitter
from coordinator.spouts.partition_cut import link_to, partition_scope
from coordinator.transactional.emitter_task import EmitterTask, EmittingTasks
from state.codec import pack, unpack
from state.errors import FailedException, SourceError
from tests.support.tasks.emitting import att, batches, run_emitter, wiring_of
from tests.support.tasks.wirings import RecordingBolt, Sent
from tests.support.topologies.components import build, plan


class Calls:
    log: ClassVar[list[tuple[Any, ...]]] = []
    raising: ClassVar[dict[Any, Exception]] = {}


@pytest.fixture(autouse=True)
def fresh():
    Calls.log.clear()
    Calls.raising.clear()


class Log(IPartitionedTransactionalSpout):
    """Partition p holds p*100, p*100+1, …; a batch is two of them, its metadata [first, next]."""

    output_fields = ("value",)

    def get_coordinator(self, conf, context):
        raise NotImplementedError

    def get_emitter(self, conf, context):
        Calls.log.append(("open", context.task_index))
        return LogEmitter(context)


class LogEmitter(PartitionedEmitter):
    def __init__(self, context):
        self.context = context

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        first = partition * 100 if last is None else last[1]
        Calls.log.append(("new", attempt.txid, partition, last))
        self._emit(attempt, collector, partition, [first, first + 2])
        return Calls.raising.get("metadata", [first, first + 2])

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        Calls.log.append(("again", attempt.txid, partition, metadata))
        self._emit(attempt, collector, partition, metadata)

    def _emit(self, attempt, collector, partition, metadata):
        for value in range(*metadata):
            collector.emit([value])
        self.context.count("emitted", 2)
        if (attempt.txid, partition) in Calls.raising:
            raise Calls.raising[attempt.txid, partition]

    def close(self):
        Calls.log.append(("close",))


def run(given, *, stored=None, spout=None, task_index=0, task_count=1):
    return run_emitter(spout or Log(), given, stored, task_index, task_count)


def test_new_batches_are_cut_each_from_the_one_before_within_a_wave():
    emitted, values = run(batches((1, 2), (2, 2)))
    assert values == {1: [0, 1, 100, 101], 2: [2, 3, 102, 103]}
    assert [e.metadata for e in emitted] == [
        {"partition.0": [0, 2], "partition.1": [100, 102]},
        {"partition.0": [2, 4], "partition.1": [102, 104]},
    ]
    new = [("new", 1, 0, None), ("new", 1, 1, None), ("new", 2, 0, [0, 2]), ("new", 2, 1, [100, 102])]
    assert Calls.log == [("open", 0), *new, ("close",)]


def test_a_replay_emits_exactly_what_is_stored_and_stores_nothing():
    stored = {"partition.0": {4: [8, 11]}, "partition.1": {4: [100, 101]}}
    emitted, values = run(batches((4, 2), attempt_id=9), stored=stored)
    assert values == {4: [8, 9, 10, 100]}
    assert emitted[0].metadata == {}
    assert [call[0] for call in Calls.log] == ["open", "again", "again", "close"]


def test_a_new_batch_goes_on_from_what_is_stored_of_the_one_before():
    emitted, values = run(batches((4, 1), (5, 1)), stored={"partition.0": {3: [6, 8], 4: [8, 11]}})
    assert values == {4: [8, 9, 10], 5: [11, 12]}
    assert [e.metadata for e in emitted] == [{}, {"partition.0": [11, 13]}]


def test_stored_nothing_is_emitted_again_as_nothing():
    emitted, values = run(batches((4, 1)), stored={"partition.0": {4: None, 5: [0, 2]}})
    assert (values, emitted[0].metadata, emitted[0].failure) == ({}, {}, None)


def test_a_partition_of_which_a_later_batch_is_stored_emits_nothing_and_stores_that():
    emitted, values = run(batches((4, 1)), stored={"partition.0": {3: [6, 8], 5: [8, 10]}})
    assert (values, emitted[0].metadata) == ({}, {"partition.0": None})
    assert Calls.log == [("open", 0), ("close",)]


@pytest.mark.parametrize(
    ("task_index", "partitions"), [(0, [0, 3, 6]), (1, [1, 4]), (2, [2, 5])], ids=["first", "second", "third"]
)
def test_task_k_of_n_owns_partitions_k_k_plus_n_and_so_on(task_index, partitions):
    emitted, _ = run(batches((1, 7)), task_index=task_index, task_count=3)
    assert list(emitted[0].metadata) == [partition_scope(partition) for partition in partitions]


def test_a_task_without_partitions_emits_and_stores_nothing():
    sent = Sent()
    task = EmitterTask(wiring_of(Log(), 1, 2), sent.carrier, {})
    assert list(task.run(batches((1, 1)))) == [(att(1), None)]
    assert [(frame.kind, unpack(frame.payload)) for frame in sent] == [(FrameKind.COORD, 0)]
    assert Calls.log == [], "it is not even opened"


@pytest.mark.case(id="P-06")
def test_a_replay_keeps_the_number_of_partitions_it_was_first_given():
    """The number is the coordinator's metadata; a partition that came later has no part in the txid."""
    stored = {"partition.0": {4: [8, 10]}}
    emitted, values = run(batches((4, 1), (5, 2)), stored=stored)
    assert values == {4: [8, 9], 5: [10, 11, 100, 101]}
    assert [e.metadata for e in emitted] == [{}, {"partition.0": [10, 12], "partition.1": [100, 102]}]


def test_a_report_counts_tuples_and_has_the_batch_edge_and_one_for_every_target():
    sent = Sent()
    task = EmitterTask(wiring_of(Log()), sent.carrier, {})
    emitted = [result for _, result in task.run(batches((1, 2), (2, 1))) if result is not None]
    for one, tuple_count in zip(emitted, (4, 2), strict=True):
        assert one.tuple_count == tuple_count
        assert one.counters == {"emitted": tuple_count}
    assert emitted[0].edges == batch_edge(att(1), 1, pack(2)) ^ sent.edges(att(1))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FailedException("later"), FailureKind.FAILED),
        (SourceError("file is gone"), FailureKind.SOURCE),
        (ValueError("mine"), FailureKind.USER),
    ],
    ids=lambda part: type(part).__name__,
)
def test_an_emitter_that_fails_an_attempt_fails_every_later_one_of_the_wave(error, kind):
    Calls.raising[2, 1] = error
    emitted, values = run(batches((1, 2), (2, 2), (3, 2)))
    failures = [one.failure for one in emitted]
    assert failures[0] is None
    assert failures[1] is not None
    assert failures[1].kind is kind
    assert failures[2] == Failure(FailureKind.INCOMPLETE, "log", 0, f"attempt {att(2)} failed earlier in this task")
    assert [one.metadata for one in emitted[1:]] == [{}, {}]
    assert 3 not in values
    assert ("close",) in Calls.log


class Unopened(Log):
    def get_emitter(self, conf, context):
        raise ValueError("cannot be opened")


@pytest.mark.case(id="P-06")
@pytest.mark.case(id="P-14")
@pytest.mark.parametrize(
    ("metadata", "story"),
    [
        (object(), "cannot be sent or stored: <object object at"),
        ({1, 2}.__iter__, "cannot be sent or stored"),
        (None, "emit_partition_batch_new returned None for partition 0"),
    ],
    ids=["object", "method", "None"],
)
def test_metadata_that_cannot_be_stored_is_the_users_failure_and_not_the_tasks(metadata, story):
    """None would stand for "nothing was emitted", and the next batch would begin at the beginning."""
    Calls.raising["metadata"] = metadata
    (emitted,) = run(batches((1, 1)))[0]
    assert emitted.failure is not None
    assert emitted.failure.kind is FailureKind.USER
    assert story in emitted.failure.text
    assert emitted.metadata == {}


class Plain(ITransactionalSpout):
    output_fields = ("value",)

    def get_coordinator(self, conf, context):
        raise NotImplementedError

    def get_emitter(self, conf, context):
        return PlainEmitter()


class PlainEmitter(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        for value in metadata:
            collector.emit([object() if value == "object" else value])

    def close(self):
        raise OSError("already closed")


def test_a_plain_spout_is_given_the_coordinators_metadata_as_it_was():
    emitted, values = run(batches((1, ["a", (1, 2), b"c"]), (2, ["a"])), spout=Plain())
    assert values == {1: ["a", (1, 2), b"c"], 2: ["a"]}
    assert [(one.failure, one.metadata) for one in emitted] == [(None, {}), (None, {})]


@pytest.mark.parametrize(
    ("spout", "given"),
    [(Plain(), batches((1, ["object"]), (2, ["a"]))), (Unopened(), batches((1, 1), (2, 1)))],
    ids=["a value that cannot be sent", "an emitter that cannot be made"],
)
def test_what_the_user_cannot_do_fails_the_attempts_and_not_the_task(spout, given):
    emitted, _ = run(given, spout=spout)
    kinds = [one.failure and one.failure.kind for one in emitted]
    assert kinds == [FailureKind.USER, FailureKind.INCOMPLETE]


def test_an_emitter_that_cannot_be_closed_fails_nothing(caplog):
    emitted, _ = run(batches((1, ["a"])), spout=Plain())
    assert emitted[0].failure is None
    assert "emitter of 'log' could not be closed" in caplog.text


class Sharing(Plain):
    """Value n of a batch belongs to task n; a batch that begins with an answer gives that instead of the tasks."""

    def emitting_tasks(self, txid, metadata, task_count):
        if metadata[:1] == ["wrong"]:
            return metadata[1]
        if metadata[:1] == ["raise"]:
            raise FailedException("who emits is unknown")
        return range(len(metadata))


def test_a_task_that_has_no_share_of_a_batch_is_not_asked_for_it():
    given = batches((1, ["a"]), (2, ["a", "b"]), (3, []))
    asked = [[e.attempt.txid for e in run_emitter(Sharing(), given, None, task, 3)[0]] for task in range(3)]
    assert asked == [[1, 2], [2], []]


@pytest.mark.parametrize("answer", [3, [3], [-1], [True], ["0"], None], ids=repr)
def test_an_answer_that_names_no_tasks_fails_every_task(answer):
    given = batches((1, ["wrong", answer]))
    for task in range(3):
        (emitted,) = run_emitter(Sharing(), given, None, task, 3)[0]
        assert emitted.failure is not None
        assert emitted.failure.task_index == task
        assert "emitting_tasks returned" in emitted.failure.text


def test_what_the_spout_raises_instead_of_naming_tasks_fails_every_task():
    tasks = EmittingTasks(wiring_of(Sharing(), 0, 2))
    given = batches((1, ["raise"]), (2, ["a"]))
    assert tasks.idle_places(given) == {0: 0b00, 1: 0b10}
    (emitted, _), _ = run_emitter(Sharing(), given, None, 1, 2)
    assert emitted.failure is not None
    assert emitted.failure.text == "FailedException: who emits is unknown"


def test_a_tree_begins_with_the_edges_to_the_tasks_that_have_a_share():
    """Thus an emitter that emits without a share, or keeps its own for itself, leaves the tree open."""
    made = plan(build(("work", RecordingBolt(), ["lines"]), spout=Sharing(), spout_tasks=3))
    tasks, given = EmittingTasks(made.wirings[1]), batches((1, ["a", "b"]), (2, []))
    assert [tasks.edges(made, batch) for batch in given] == [
        batch_edge(att(1), 1, pack(["a", "b"])) ^ batch_edge(att(1), 2, pack(["a", "b"])),
        0,
    ]


# Hooks


class Hook(ITaskHook):
    def __init__(self, raising=""):
        self.raising = raising

    def prepare(self, conf, context):
        Calls.log.append(("hook", "prepare", context.component_id))

    def emit(self, info):
        Calls.log.append(("hook", "emit", *info.values))
        if self.raising == "emit":
            raise FailedException("in the hook")

    def cleanup(self):
        Calls.log.append(("hook", "cleanup"))
        if self.raising == "cleanup":
            raise ValueError("late")


def run_watched(hook, *pairs):
    task = EmitterTask(replace(wiring_of(Log()), hook_specs=(pickle.dumps(hook),)), Sent().carrier, {})
    emitted = [result for _, result in task.run(batches(*pairs)) if result is not None]
    task.close()  # once more, which does nothing
    return emitted, [line[1:] for line in Calls.log if line[0] in ("hook", "close")]


def kinds_of(emitted):
    return [one.failure and (one.failure.kind, one.failure.text) for one in emitted]


IN_HOOK = (FailureKind.FAILED, "FailedException: in the hook")


@pytest.mark.parametrize(
    ("raising", "pairs", "failures", "emits"),
    [("", [(1, 1), (2, 1)], [None, None], 4), ("emit", [(1, 1)], [IN_HOOK], 1), ("cleanup", [(1, 1)], [None], 2)],
)
def test_a_hook_watches_an_emitter_to_its_end_and_what_it_raises_fails_the_attempt_that_emits(
    raising, pairs, failures, emits
):
    emitted, log = run_watched(Hook(raising), *pairs)
    assert kinds_of(emitted) == failures
    assert log == [("prepare", "log"), *(("emit", value) for value in range(emits)), (), ("cleanup",)]


def test_an_emitter_is_measured_by_what_it_emitted_also_in_an_attempt_that_failed():
    Calls.raising[2, 0] = FailedException("no")
    emitted, _ = run(batches((1, 2), (2, 2), (3, 2)))
    finished, failed = TaskMetrics({"default": 4}, {"default": 4}, batches=1), TaskMetrics({"default": 2})
    assert [e.metrics["log"] for e in emitted] == [finished, failed, TaskMetrics()]


def test_each_cut_is_linked_to_what_it_was_cut_from():
    """A run tells by it whether two batches of a wave come of one execution of the task."""
    emitted, _ = run(batches((5, 1), (6, 1)), stored={"partition.0": {4: [3, 7]}})
    assert [e.began_from["partition.0"] for e in emitted] == [link_to([3, 7]), link_to([7, 9])]
