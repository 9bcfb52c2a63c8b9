"""What a plain topology is measured by: counts by stream, and times of the run's own clock."""

from __future__ import annotations

from coordinated_bolt import BaseBasicBolt, BaseBatchBolt, ExecuteInfo, ITaskHook
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from state.errors import FailedException
from tests.support.tasks.wirings import Calls
from tests.support.topologies.plain_components import Identity, Sink, fed_builder, start

SECOND = 1_000_000_000


class Picky(BaseBasicBolt):
    """Emits every number twice, and fails what is below 0."""

    output_fields = ("value",)

    def execute(self, tup, collector):
        if tup["value"] < 0:
            raise FailedException("below 0")
        collector.emit(tup.values)
        collector.emit(tup.values)


def test_every_component_is_counted_by_stream():
    builder = fed_builder()
    builder.set_bolt("picky", Picky(), 2).shuffle_grouping("spout")
    builder.set_bolt("all", Sink(), 3).all_grouping("picky")
    run = start(builder)
    for number in (1, 2, -3):
        run.feed("spout", [number], message_id=number)
    run.run_until_idle()
    spout, picky, sinks = (run.metrics(component) for component in ("spout", "picky", "all"))
    assert (spout.work.emitted, spout.work.transferred) == ({"default": 3}, {"default": 3})
    assert (spout.acked, spout.failed) == ({"default": 2}, {"default": 1})
    assert picky.work.executed == {"spout/default": 3}
    assert (picky.acked, picky.failed) == ({"spout/default": 2}, {"spout/default": 1})
    assert (picky.work.emitted, picky.work.transferred) == ({"default": 4}, {"default": 12})
    assert sinks.work.executed == sinks.acked == {"picky/default": 12}


def test_the_time_to_an_ack_is_measured_at_the_spout_and_at_the_bolt():
    builder = fed_builder()
    builder.set_bolt("identity", Identity()).shuffle_grouping("spout")
    builder.set_bolt("held", Sink()).shuffle_grouping("identity")
    run = start(builder, by_hand=["held"])
    run.feed("spout", [1], message_id="a")
    run.run_until_idle()
    run.advance_time(2)
    run.ack(run.waiting("held")[0])
    run.run_until_idle()
    assert run.metrics("held").ack_ns == {"identity/default": 2 * SECOND}
    assert run.metrics("spout").ack_ns == {"default": 2 * SECOND}
    assert run.metrics("identity").ack_ns == {"spout/default": 0}


class Times(ITaskHook):
    """Notes what hooks are told of times."""

    def execute(self, info):
        assert isinstance(info, ExecuteInfo)
        Calls.log.append(("executed", info.latency_ns))

    def bolt_ack(self, info):
        Calls.log.append(("bolt acked", info.latency_ns))

    def spout_ack(self, info):
        Calls.log.append(("spout acked", info.latency_ns))


def test_hooks_are_told_the_same_times():
    Calls.take()
    builder = fed_builder()
    builder.add_task_hook(Times())
    builder.set_bolt("held", Sink()).shuffle_grouping("spout")
    run = start(builder, by_hand=["held"])
    run.feed("spout", [1], message_id="a")
    run.run_until_idle()
    run.advance_time(3)
    run.ack(run.waiting("held")[0])
    run.run_until_idle()
    assert Calls.take() == [("executed", 0), ("bolt acked", 3 * SECOND), ("spout acked", 3 * SECOND)]


class Passing(BaseBatchBolt):
    output_fields = ("value",)

    def execute(self, tup):
        self.collector.emit(tup.values)


def test_batches_of_a_sub_topology_are_counted_too():
    batches = BatchSubtopologyBuilder("master", Passing())
    batches.master_declarer.shuffle_grouping("spout")
    batches.set_bolt("inner", Passing(), 2).shuffle_grouping("master")
    builder = fed_builder()
    batches.extend_topology(builder)
    run = start(builder)
    for number in range(3):
        run.feed("spout", [number], message_id=number)
    run.run_until_idle()
    master, inner = run.metrics("master"), run.metrics("inner")
    assert master.work.executed == master.acked == {"spout/default": 3}
    assert master.work.emitted == {"default": 3}
    assert inner.work.executed == inner.acked == {"master/default": 3}
    assert (master.work.batches, inner.work.batches) == (3, 6)
