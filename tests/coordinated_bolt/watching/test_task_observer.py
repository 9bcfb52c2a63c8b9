"""Hooks are told what a task emits and executes, wherever they were added, and are cleaned up with the bolt."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import count

import pytest

from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt, CoordTuples, RegularTuples
from coordinated_bolt.completeness.failure import FailureKind
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.task_hook import EmitInfo, ITaskHook
from coordinated_bolt.streams.declared import StreamSpec
from coordinated_bolt.watching.task_observer import TaskObserver
from state.errors import FailedException
from tests.support.tasks.wirings import ONE_FIELD, Calls, Sent, attempt, origin_of, output, wire

A, B = attempt(1), attempt(2)
DIRECT = StreamSpec("direct", ("value",), direct=True)


class Hook(ITaskHook):
    def __init__(self, name="hook", raising=None):
        self.name, self.raising = name, raising

    def prepare(self, conf, context):
        self._did("prepare", dict(conf), context.component_id)

    def emit(self, info):
        self._did("emit", info)

    def execute(self, info):
        self._did("execute", info.tup["value"], info.latency_ns)

    def cleanup(self):
        self._did("cleanup")

    def _did(self, what, *arguments):
        Calls.log.append((self.name, what, *arguments))
        if self.raising == what:
            raise FailedException(f"in {what}")


class Bolt(BaseBatchBolt):
    """Emits each value once on each stream, in each way."""

    def __init__(self, hook=None):
        self.hook = hook

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        if self.hook is not None:
            context.add_task_hook(self.hook)

    def execute(self, tup):
        self.collector.emit([tup["value"]])

    def finish_batch(self):
        self.collector.emit_all([["x"], ["y"]])
        self.collector.emit_direct(22, ["z"], "direct")

    def cleanup(self):
        Calls.log.append(("bolt", "cleanup"))


def run(bolt, *values, observer=None, hook_specs=(), of=A):
    wiring = wire(bolt, targets=(21, 22), streams=output((21, 22), None, ONE_FIELD, DIRECT))
    wiring = replace(wiring, hook_specs=hook_specs)
    outboxes, clock = wiring.outboxes(Sent().carrier), count().__next__
    task = CoordinatedBolt(wiring, outboxes, observer=observer, clock=clock)
    tuples = RegularTuples([(origin_of(wiring, of), [[value] for value in values])])
    task.on(of, [tuples, CoordTuples.of(1, len(values))])
    return task.end(of)


def test_a_hook_is_prepared_sees_every_emit_and_execute_and_is_cleaned_up_after_the_bolt():
    assert run(Bolt(Hook()), "a", "b").failure is None
    log = Calls.take()
    assert [line[:2] for line in log] == [
        ("hook", "prepare"),
        ("hook", "emit"),
        ("hook", "execute"),
        ("hook", "emit"),
        ("hook", "execute"),
        ("hook", "emit"),
        ("hook", "emit"),
        ("hook", "emit"),
        ("bolt", "cleanup"),
        ("hook", "cleanup"),
    ]
    assert log[0] == ("hook", "prepare", {"key": "value"}, "bolt")
    emits = [line[2] for line in log if line[1] == "emit"]
    assert [(info.values, info.stream_id, info.task_id) for info in emits] == [
        (("a",), "default", 10),
        (("b",), "default", 10),
        (("x",), "default", 10),
        (("y",), "default", 10),
        (("z",), "direct", 10),
    ]
    assert sorted(info.out_tasks for info in emits[:2]) == [(21,), (22,)]
    assert emits[-1] == EmitInfo(("z",), "direct", 10, (22,), A)


def test_the_latency_of_each_tuple_is_measured_by_the_tasks_clock():
    run(Bolt(Hook()), "a", "b")  # this clock moves by one whenever it is read
    assert [line[2:] for line in Calls.take() if line[1] == "execute"] == [("a", 1), ("b", 1)]


class Engine(TaskObserver):
    """Notes what it is told."""

    def emitted(self, stream_id, values, receivers, attempt=None):
        Calls.log.append(("engine", "emit", list(values), attempt))

    def executed(self, tup, latency_ns):
        Calls.log.append(("engine", "execute", tup["value"], latency_ns))


def test_the_engines_observer_is_told_first_then_hooks_of_the_topology_and_of_the_bolt():
    shipped = pickle.dumps(Hook("topology"))
    run(Bolt(Hook("bolt's")), "a", observer=Engine(), hook_specs=(shipped,))
    log = Calls.take()
    for what in ("emit", "execute"):
        names = [line[0] for line in log if line[1] == what]
        assert names[:3] == ["engine", "topology", "bolt's"], what
    for what in ("prepare", "cleanup"):
        assert [line[0] for line in log if line[1] == what and line[0] != "bolt"] == ["topology", "bolt's"], what


def test_an_engines_observer_hears_of_every_tuple_of_every_attempt_though_there_are_no_hooks():
    engine = Engine()
    for of in (A, B):
        assert run(Bolt(), "a", observer=engine, of=of).failure is None
    told = [[("engine", "emit", [value], of) for value in ("a", "x", "y", "z")] for of in (A, B)]
    log = [line for line in Calls.take() if line[0] == "engine"]
    assert [line for line in log if line[1] == "emit"] == [*told[0], *told[1]]
    assert [line for line in log if line[1] == "execute"] == 2 * [("engine", "execute", "a", 1)]


def test_shipped_hooks_are_made_anew_for_each_attempt():
    for of in (A, B):
        run(Bolt(), of=of, hook_specs=(pickle.dumps(Hook("topology")),))
    log = [line[:2] for line in Calls.take() if line[1] in ("prepare", "cleanup") and line[0] != "bolt"]
    assert log == 2 * [("topology", "prepare"), ("topology", "cleanup")]


@pytest.mark.parametrize("where", ["prepare", "emit", "execute", "cleanup"])
def test_what_a_hook_raises_fails_the_attempt_as_if_the_bolt_had(where):
    failure = run(Bolt(Hook(raising=where)), "a").failure
    assert (failure.kind, failure.component_id) == (FailureKind.FAILED, "bolt")
    assert failure.text == f"FailedException: in {where}"
    assert [line[:2] for line in Calls.take()][-2:] == [("bolt", "cleanup"), ("hook", "cleanup")]


def test_a_hook_that_is_none_is_the_users_bug():
    failure = run(Bolt("no hook"), "a").failure
    assert failure.kind is FailureKind.USER
    assert "add_task_hook got 'no hook'; give an instance of ITaskHook" in failure.text


class Many(Bolt):
    def execute(self, tup):
        self.collector.emit_all([[tup["value"], "too many"]])


def test_emit_all_refuses_the_same_with_a_hook_as_without():
    with_hook, without = run(Many(Hook()), "a").failure, run(Many(), "a").failure
    assert with_hook.text.splitlines()[-1] == without.text.splitlines()[-1]
