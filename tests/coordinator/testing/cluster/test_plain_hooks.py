"""Hooks in a plain topology, and what its builder sets per component."""

from __future__ import annotations

from typing import Any

import pytest

from coordinated_bolt import TICK_TUPLE_FREQ_SECS, AckInfo, BaseBasicBolt, BaseRichBolt, FailInfo, ITaskHook, is_tick
from coordinator.spouts.memory import FeederSpout
from state.errors import FailedException, UserCodeError
from tests.support.topologies.plain_components import Identity, Sink, fed_builder, start

LOG: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _fresh():
    LOG.clear()


class Hook(ITaskHook):
    def __init__(self, raising=""):
        self.raising = raising

    def prepare(self, conf, context):
        self.component_id = context.component_id
        self._did("prepare")

    def emit(self, info):
        self._did("emit", info.values, len(info.out_tasks))

    def execute(self, info):
        self._did("execute", tuple(info.tup.values))

    def bolt_ack(self, info):
        assert type(info) is AckInfo
        self._did("bolt_ack", tuple(info.acked.values))

    def bolt_fail(self, info):
        assert type(info) is FailInfo
        self._did("bolt_fail", tuple(info.failed.values))

    def spout_ack(self, info):
        self._did("spout_ack", info.acked)

    def spout_fail(self, info):
        self._did("spout_fail", info.failed)

    def cleanup(self):
        self._did("cleanup")

    def _did(self, what, *arguments):
        LOG.append((self.component_id, what, *arguments))
        if self.raising == what and self.component_id == "bolt":
            raise ValueError(f"in {what}")


class Picky(BaseBasicBolt):
    output_fields = ("value",)

    def execute(self, tup, collector):
        if tup[0] == "bad":
            raise FailedException("no")
        collector.emit([tup[0]])


def run_of(hook, *values, bolt=None):
    builder = fed_builder()
    builder.set_bolt("bolt", bolt or Picky()).shuffle_grouping("spout")
    if hook is not None:
        builder.add_task_hook(hook)
    run = start(builder)
    for value in values:
        run.feed("spout", [value], f"id of {value}")
    run.run_until_idle()
    return run


def test_a_hook_of_the_topology_sees_emits_executes_acks_and_failures_of_every_task():
    run_of(Hook(), "a", "bad").close()
    of = {name: [line[1:] for line in LOG if line[0] == name] for name in ("spout", "bolt")}
    of_a = [("emit", ("a",), 0), ("bolt_ack", ("a",)), ("execute", ("a",))]
    assert of["bolt"] == [("prepare",), *of_a, ("bolt_fail", ("bad",)), ("execute", ("bad",)), ("cleanup",)]
    assert of["spout"][0] == ("prepare",)
    emitted = [("emit", ("a",), 1), ("emit", ("bad",), 1)]
    assert sorted(of["spout"][1:-1]) == [*emitted, ("spout_ack", "id of a"), ("spout_fail", "id of bad")]
    assert of["spout"][-1] == ("cleanup",)


@pytest.mark.parametrize("where", ["prepare", "emit", "bolt_ack", "bolt_fail", "execute"])
def test_what_a_hook_raises_ends_the_run_as_the_bolts_error(where):
    with pytest.raises(UserCodeError, match=rf"component 'bolt', task 0(.*\n)*.*ValueError: in {where}"):
        run_of(Hook(where), "bad" if where == "bolt_fail" else "a")


def test_a_cleanup_that_raises_is_told_when_the_run_is_closed():
    run = run_of(Hook("cleanup"), "a")
    with pytest.raises(UserCodeError, match="ValueError: in cleanup"):
        run.close()


class Own(BaseRichBolt):
    """Adds a hook of its own."""

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        context.add_task_hook(Hook())

    def execute(self, tup):
        self.collector.ack(tup)


def test_a_bolt_may_add_a_hook_of_its_own():
    run_of(None, "a", bolt=Own())
    assert LOG == [("bolt", "prepare"), ("bolt", "bolt_ack", ("a",)), ("bolt", "execute", ("a",))]


class Ticked(BaseBasicBolt):
    def execute(self, tup, collector):
        if is_tick(tup):
            LOG.append(("tick", self.context.task_index, self.context.task_count))


def test_tasks_and_ticks_are_set_per_component():
    builder = fed_builder()
    builder.set_spout("other", FeederSpout(("value",)), parallelism=2).set_num_tasks(3)
    ticked = builder.set_bolt("ticked", Ticked(), parallelism=1).shuffle_grouping("spout")
    ticked.set_num_tasks(2).add_configuration(TICK_TUPLE_FREQ_SECS, 5)
    builder.set_bolt("quiet", Identity()).shuffle_grouping("other")
    builder.set_bolt("end", Sink()).shuffle_grouping("quiet")
    assert builder.build().component("other").task_count == 3
    run = start(builder)
    run.advance_time(5)
    run.run_until_idle()
    assert sorted(LOG) == [("tick", 0, 2), ("tick", 1, 2)]
    assert run.emitted("quiet") == []
