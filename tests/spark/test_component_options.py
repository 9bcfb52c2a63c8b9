"""What is set per component reaches executors; basic bolts, callbacks, hooks and metrics work as in one process."""

from __future__ import annotations

import pytest

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import FinishedCallback
from coordinated_bolt.components.task_hook import ITaskHook
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.errors import FailedException
from tests.support.spark.bolts import Numbers, Store, exact_counts, exact_sums, numbers_topology, once

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSACTIONS, SIZE = 6, 8


class Work(BaseBasicBolt, FinishedCallback):
    """Passes on, counts what it is told, and fails at one number the first time."""

    output_fields = ("number",)

    def __init__(self, marker):
        self.marker = marker

    def execute(self, tup, collector):
        if tup["number"] == 20 and once(self.marker):
            raise FailedException("the first time")
        self.context.count(self.conf["counter"])
        collector.emit([tup["number"]])

    def finished_id(self, attempt):
        self.context.count(f"finished of {self.context.task_count}")


class CountingHook(ITaskHook):
    def prepare(self, conf, context):
        self.context = context

    def emit(self, info):
        self.context.count("emits seen")

    def execute(self, info):
        self.context.count(f"executes seen of {self.context.component_id}")


@pytest.mark.nightly
def test_a_basic_bolt_with_its_own_tasks_and_configuration_is_watched_and_measured(cluster, tmp_path):
    builder = TransactionalTopologyBuilder("numbers", "numbers", Numbers(TRANSACTIONS, SIZE), parallelism=2)
    work = builder.set_bolt("work", Work(str(tmp_path / "failed")), parallelism=1).set_num_tasks(3)
    work.shuffle_grouping("numbers").add_configuration("counter", "worked")
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("work", ["number"])
    builder.add_task_hook(CountingHook())
    statistics = cluster.run(builder.build({"counter": "of the topology"}))

    tuples = TRANSACTIONS * SIZE
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
    assert cluster.hash("{numbers}:sums") == exact_sums(TRANSACTIONS)
    assert dict(statistics.counters) == {
        "worked": tuples,
        "finished of 3": 3 * TRANSACTIONS,
        "emits seen": 2 * tuples,
        "executes seen of work": tuples,
        "executes seen of store": tuples,
    }
    components = statistics.components
    assert components["work"].acked == {"numbers/default": tuples}
    assert components["work"].failed["numbers/default"] > 0
    assert components["store"].acked == {"work/default": tuples}
    assert components["work"].work.execute_ns["numbers/default"] > 0
    assert components["store"].work.finish_ns > 0


@pytest.mark.parametrize("early_commit", [True, False])
@pytest.mark.often("False")
def test_committers_are_timed_in_whichever_job_they_run(cluster, early_commit):
    statistics = cluster.run(numbers_topology(TRANSACTIONS), early_commit=early_commit)
    store = statistics.components["store"].work
    assert store.execute_ns["work/default"] > 0
    assert store.finish_ns > 0
