"""What is counted of a task and attempt, and how it adds up to components."""

from __future__ import annotations

import pytest

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt, CoordTuples, RegularTuples
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.streams.groupings import AllGrouping, ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.watching.metrics import ComponentMetrics, TaskMetrics
from state.codec import pack, unpack
from state.errors import FailedException
from tests.support.tasks.outboxes import attempt_outbox
from tests.support.tasks.wire import arrived
from tests.support.tasks.wirings import ONE_FIELD, RecordingBolt, Sent, attempt, wire

A = attempt(1)
MORE = StreamSpec("more", ("value",))


class Splitting(BaseBatchBolt):
    """Emits each value on the default stream, and the number of values on "more"."""

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.count = 0

    def execute(self, tup):
        self.count += 1
        if tup[0] == "fail":
            raise FailedException("no")
        self.collector.emit([tup[0]])

    def finish_batch(self):
        self.collector.emit_all([[self.count], [self.count]], "more")


class Steps:
    """A clock that moves by the next step whenever it is read."""

    def __init__(self, *steps):
        self.now_ns, self.steps = 0, list(steps)

    def __call__(self):
        self.now_ns += self.steps.pop(0)
        return self.now_ns


def streams():
    """The default stream is heard by two components, one of them with all its tasks; "more" by nobody."""
    heard = (Subscriber("some", (21, 22), ShuffleGrouping()), Subscriber("all", (31, 32, 33), AllGrouping()))
    return {"default": OutputStream(0, ONE_FIELD, heard), "more": OutputStream(1, MORE, ())}


def run(clock, *runs, report=None):
    """Executes runs of values, each (stream index, values), sent as frames of source task 1."""
    sent = Sent()
    up = wire(RecordingBolt(), task_id=1, upstream=(), streams=upstream(), targets=(10,))
    outbox = attempt_outbox(up, A, sent.carrier)
    for stream_id, values in runs:
        AttemptCollector(up, A, outbox).emit_all([[value] for value in values], stream_id)
    outbox.close()
    wiring = wire(
        Splitting(),
        upstream_streams=(ONE_FIELD, MORE),
        streams=streams(),
        targets=(21, 22, 31, 32, 33),
        component_id="c",
    )
    return BatchTask(wiring, CoordinatedBolt(wiring, wiring.outboxes(Sent().carrier), clock=clock)).run(
        A, arrived(A, sent)
    )


def upstream():
    to_us = (Subscriber("c", (10,), ShuffleGrouping()),)
    return {"default": OutputStream(0, ONE_FIELD, to_us), "more": OutputStream(1, MORE, to_us)}


def test_a_task_counts_by_stream_and_reads_the_clock_twice_per_run_and_around_the_finish():
    clock = Steps(0, 5, 100, 7, 100, 11)
    result = run(clock, ("default", "abc"), ("more", "de"))
    assert result.failure is None
    assert clock.steps == []
    assert result.metrics["c"] == TaskMetrics(
        emitted={"default": 5, "more": 2},
        transferred={"default": 20},
        executed={"source/default": 3, "source/more": 2},
        execute_ns={"source/default": 5, "source/more": 7},
        finish_ns=11,
        batches=1,
    )


def test_of_an_attempt_that_failed_the_runs_before_are_counted_and_no_batch_is():
    result = run(Steps(0, 5, 100), ("default", "abc"), ("more", ["d", "fail"]), ("default", "e"))
    assert result.failure is not None
    assert result.metrics["c"].executed == {"source/default": 3}
    assert result.metrics["c"].emitted == {"default": 4}
    assert (result.metrics["c"].batches, result.metrics["c"].finish_ns) == (0, 0)


def test_without_a_clock_there_are_counts_and_no_latencies():
    wiring = wire(RecordingBolt(), targets=(21,))
    bolt = CoordinatedBolt(wiring, wiring.outboxes(Sent().carrier))
    bolt.on(A, [RegularTuples([(wiring.origin(A, 1, 0), [["a"]])]), CoordTuples.of(1, 1)])
    metrics = bolt.end(A).metrics["bolt"]
    assert metrics == TaskMetrics({"default": 1}, {"default": 1}, {"source/default": 1}, {"source/default": 0}, 0, 1)


@pytest.mark.parametrize("given", [TaskMetrics(), TaskMetrics({"a": 1}, {"a": 2}, {"c/a": 3}, {"c/a": 2**60}, 4, 5, 6)])
def test_metrics_survive_the_wire(given):
    assert TaskMetrics.from_wire(unpack(pack(given.to_wire()))) == given


def test_work_adds_up_and_what_was_executed_is_acked_or_failed():
    component = ComponentMetrics()
    one = TaskMetrics({"a": 1, "b": 2}, {"a": 3}, {"c/a": 4}, {"c/a": 50}, finish_ns=6, batches=1)
    component.add(one, is_committed=True)
    component.add(one, is_committed=False)
    component.add(TaskMetrics(executed={"c/a": 10, "d/a": 1}), is_committed=True)
    assert component.to_dict() == {
        "emitted": {"a": 2, "b": 4},
        "transferred": {"a": 6},
        "executed": {"c/a": 18, "d/a": 1},
        "acked": {"c/a": 14, "d/a": 1},
        "failed": {"c/a": 4},
        "execute_ns": {"c/a": 100},
        "ack_ns": {},
        "finish_ns": 12,
        "batches": 2,
        "dead_letters": 0,
    }
    assert one == TaskMetrics({"a": 1, "b": 2}, {"a": 3}, {"c/a": 4}, {"c/a": 50}, 6, 1)  # is left as it was


def test_what_tasks_of_a_plain_topology_did_adds_up_and_travels():
    one = ComponentMetrics(TaskMetrics({"a": 1}), {"c/a": 2}, {"c/b": 3}, {"c/a": 40})
    travelled = ComponentMetrics.from_wire(unpack(pack(one.to_wire())))
    assert travelled == one
    travelled.merge(one)
    assert travelled == ComponentMetrics(TaskMetrics({"a": 2}), {"c/a": 4}, {"c/b": 6}, {"c/a": 80})
