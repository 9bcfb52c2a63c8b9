"""Whole runs in one process: basic bolts, callbacks, hooks and metrics, with attempts that fail on the way."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from coordinated_bolt import BaseBasicBolt, FinishedCallback, ITaskHook, TimeoutCallback
from coordinator import LocalCluster, RunOptions, TransactionalTopologyBuilder
from state import FailedException, HashState
from tests.support.runs.collecting import Collecting
from tests.support.topologies.components import Lines


class Seen:
    """What instances everywhere have seen; the engine runs in this process."""

    log: ClassVar[list[tuple[Any, ...]]] = []
    failing: ClassVar[set[int]] = set()


@pytest.fixture(autouse=True)
def seen():
    Seen.log.clear()
    Seen.failing.clear()
    yield Seen.log
    Seen.log.clear()


class Double(BaseBasicBolt, FinishedCallback, TimeoutCallback):
    """Emits each number twice, and minus one at the end of the batch; fails the first attempt at some txids."""

    output_fields = ("number",)

    def prepare(self, conf, context):
        super().prepare(conf, context)
        self.collector: Any = None

    def execute(self, tup, collector):
        self.collector = collector
        if tup.attempt.txid in Seen.failing:
            Seen.failing.discard(tup.attempt.txid)
            raise FailedException("the first time")
        collector.emit([tup["number"]])
        collector.emit([tup["number"]])

    def finished_id(self, attempt):
        Seen.log.append(("finished", attempt.txid, self.context.task_index, self.conf["mine"]))
        if self.collector is not None:
            self.collector.emit([-1])

    def timeout_id(self, attempt):
        Seen.log.append(("timeout", attempt.txid, self.context.task_index))


class Store(Collecting):
    numbers = HashState("numbers", value=int)

    def finish_batch(self):
        for number in self.column("number"):
            self.numbers.increment(str(number))


class Watching(ITaskHook):
    def prepare(self, conf, context):
        self.component_id = context.component_id

    def emit(self, info):
        Seen.log.append(("emit", self.component_id, info.values, len(info.out_tasks)))

    def execute(self, info):
        Seen.log.append(("execute", self.component_id, info.tup.attempt.txid))


def topology(*, hook=False):
    builder = TransactionalTopologyBuilder("test", "lines", Lines(3, tuples=4))
    double = builder.set_bolt("double", Double(), parallelism=1).set_num_tasks(2)
    double.shuffle_grouping("lines").add_configuration("mine", "yes")
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("double", ["number"])
    if hook:
        builder.add_task_hook(Watching())
    return builder.build()


def run(seed=1, **options):
    with LocalCluster(seed=seed) as cluster:
        running = cluster.submit(topology(**options), options=RunOptions(max_spout_pending=2))
        statistics = running.run_until_idle()
        return running.state("numbers"), statistics


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("failing", [(), (2,), (1, 3)])
def test_a_basic_bolt_takes_part_in_transactions_and_its_failures_are_replayed(seed, failing):
    Seen.failing.update(failing)
    numbers, statistics = run(seed)
    assert numbers == {"0": 6, "1": 6, "2": 6, "3": 6, "-1": 6}
    assert (statistics.committed, statistics.failed_attempts >= len(failing)) == (3, True)
    finished = [line for line in Seen.log if line[0] == "finished"]
    assert {line[1:] for line in finished} == {(txid, task, "yes") for txid in (1, 2, 3) for task in (0, 1)}
    assert {line[1] for line in Seen.log if line[0] == "timeout"} >= set(failing)


def test_metrics_of_every_component_come_with_the_statistics():
    _, statistics = run()
    components = statistics.to_dict("test")["components"]
    emits = {
        name: {key: done[key] for key in ("emitted", "transferred", "batches", "dead_letters")}
        for name, done in components.items()
    }
    assert emits == {
        name: {"emitted": emitted, "transferred": emitted, "batches": batches, "dead_letters": 0}
        for name, emitted, batches in [("lines", {"default": 12}, 3), ("double", {"default": 30}, 6), ("store", {}, 6)]
    }
    acks = {name: [done[key] for key in ("executed", "acked", "failed")] for name, done in components.items()}
    of_lines, of_double = {"lines/default": 12}, {"double/default": 30}
    assert acks == {"lines": [{}] * 3, "double": [of_lines, of_lines, {}], "store": [of_double, of_double, {}]}


@pytest.mark.parametrize("seed", range(4))
def test_executed_tuples_are_acked_or_failed_and_the_acked_ones_are_those_of_the_committed(seed):
    Seen.failing.add(2)
    _, statistics = run(seed)
    double = statistics.components["double"]
    assert double.acked == {"lines/default": 12}
    assert double.work.executed["lines/default"] == 12 + double.failed.get("lines/default", 0)
    assert statistics.components["store"].acked == {"double/default": 30}


def test_a_hook_of_the_topology_watches_every_component():
    run(hook=True)
    emitted = [line for line in Seen.log if line[0] == "emit"]
    executed = [line for line in Seen.log if line[0] == "execute"]
    assert sorted({line[1] for line in emitted}) == ["double", "lines"]
    assert {name: sum(line[1] == name for line in executed) for name in ("double", "store")} == {
        "double": 12,
        "store": 30,
    }
    assert {line[3] for line in emitted} == {1}
    assert ("emit", "lines", ("lines of 2", 3), 1) in emitted
