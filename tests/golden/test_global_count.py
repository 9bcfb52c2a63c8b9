"""Golden case G12: the global count of Storm's example, on spouts whose input is in memory."""

from __future__ import annotations

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import HashState, ValueState
from tests.support.runs.whole_runs import run
from tests.support.stores.memory_store import MemoryStore

pytestmark = pytest.mark.case(id="G12")

PARTITIONS = {
    0: [["cat"], ["dog"], ["chicken"], ["cat"], ["dog"], ["apple"]],
    1: [["cat"], ["dog"], ["apple"], ["banana"]],
    2: [["cat"]] * 5 + [["dog"]] * 4,
}


class BatchCount(BaseBatchBolt):
    """Counts its share of a batch."""

    output_fields = ("count",)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.count = 0

    def execute(self, tup):
        self.count += 1

    def finish_batch(self):
        self.collector.emit([self.count])


class UpdateGlobalCount(BaseBatchBolt, ICommitter):
    """Keeps the total, and for the test the size of each batch and the total after it."""

    total = ValueState("total", value=int)
    batches = HashState("batches", value=int, field=int)
    totals = HashState("totals", value=int, field=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.sum = 0

    def execute(self, tup):
        self.sum += tup["count"]

    def finish_batch(self):
        total = (self.total.get() or 0) + self.sum
        self.total.put(total)
        self.batches.put(self.attempt.txid, self.sum)
        self.totals.put(self.attempt.txid, total)


def global_count(spout):
    builder = TransactionalTopologyBuilder("global-count", "spout", spout, parallelism=3)
    builder.set_bolt("partial-count", BatchCount(), 5).none_grouping("spout")
    builder.set_bolt("sum", UpdateGlobalCount()).global_grouping("partial-count")
    return builder.build()


@pytest.mark.parametrize("kind", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])
@pytest.mark.parametrize("empty_batches", [0, 1, 4])
def test_batches_of_nine_seven_and_three_and_then_empty_ones_are_counted(kind, empty_batches):
    store = MemoryStore()
    spout = kind(PARTITIONS, ["word"], 3, empty_batches=empty_batches)
    run(global_count(spout), store, max_spout_pending=3)
    found = {name: dict(sorted(held.items())) for name, held in store.states.items()}
    assert list(found["batches"].values()) == [9, 7, 3] + [0] * empty_batches
    assert list(found["totals"].values()) == [9, 16, 19] + [19] * empty_batches
    assert list(found["total"].values()) == [19]
    assert store.committed_txid == 3 + empty_batches


@pytest.mark.parametrize("kind", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])
@pytest.mark.parametrize("seed", range(5))
def test_the_local_cluster_counts_the_same_tuple_by_tuple(kind, seed):
    with LocalCluster(seed=seed) as cluster:
        spout = kind(PARTITIONS, ["word"], 3, empty_batches=1)
        run = cluster.submit(global_count(spout), options=RunOptions(max_spout_pending=3))
        run.run_until_idle()
        assert run.is_done
        assert [len(run.emitted("spout", txid)) for txid in (1, 2, 3, 4)] == [9, 7, 3, 0]
        assert run.state("batches") == {1: 9, 2: 7, 3: 3, 4: 0}
        assert run.state("totals") == {1: 9, 2: 16, 3: 19, 4: 19}
        assert run.state("total") == 19
