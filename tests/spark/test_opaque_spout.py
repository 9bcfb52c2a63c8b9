"""Opaque spouts on the real engine: replays are cut differently and count once; a committer is told what is durable."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from tests.support.spark.bolts import Store, note, notes, once
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.partitioned import FailingStore, Relay

pytestmark = [pytest.mark.spark, pytest.mark.redis, EITHER_ENGINE]

PARTITIONS, WIDTH = 3, 40
FIRST, LATER = 7, 4
"""So many numbers the first attempt at a txid takes of a partition, and every later one."""


class Ranges(IOpaquePartitionedTransactionalSpout, ICommitterTransactionalSpout):
    """Partition p holds the numbers from p * WIDTH on."""

    output_fields = ("number",)
    destruction = ""  # what is told is only noted

    def __init__(self, folder, redis_url):
        self.folder, self.redis_url = str(folder), redis_url

    def get_coordinator(self, conf, context):
        return RangesCoordinator()

    def get_emitter(self, conf, context):
        return RangesEmitter(self.folder)

    def get_committer(self, conf, context):
        return RangesCommitter(self.folder, self.redis_url)


class RangesCoordinator(PartitionedCoordinator):
    def number_of_partitions(self):
        return PARTITIONS

    def is_exhausted(self):
        return all(self.run_so_far.positions.get(p) == (p + 1) * WIDTH for p in range(PARTITIONS))


class RangesEmitter(OpaquePartitionedEmitter):
    def __init__(self, folder):
        self.folder = folder

    def emit_partition_batch(self, attempt, collector, partition, last):
        first = partition * WIDTH if last is None else last
        take = FIRST if once(f"{self.folder}/first-{attempt.txid}-{partition}") else LATER
        end = min(first + take, (partition + 1) * WIDTH)
        note(f"{self.folder}/cuts", attempt.txid, partition, first, end)
        collector.emit_all([number] for number in range(first, end))
        return end


class RangesCommitter(SpoutCommitter):
    """Lives in the driver, and looks up how far the state is when it is told."""

    def __init__(self, folder, redis_url):
        self.folder = folder
        self.client = redis.Redis.from_url(redis_url)

    def commit(self, attempt):
        durable: Any = self.client.hget("{ranges}:txbatch:control", "committed")
        note(f"{self.folder}/told", attempt.txid, attempt.attempt_id, int(durable))

    def close(self):
        self.client.close()


def ranges_topology(cluster):
    """Txid 2 fails once in its processing phase, txid 3 once in its commit phase."""
    builder = TransactionalTopologyBuilder("ranges", "ranges", Ranges(cluster.notes, cluster.redis_url), parallelism=2)
    relay, store = Relay(cluster.notes / "relay", txid=2), FailingStore(cluster.notes / "store", txid=3)
    builder.set_bolt("relay", relay, parallelism=2).shuffle_grouping("ranges")
    builder.set_committer_bolt("store", store, parallelism=2).fields_grouping("relay", ["number"])
    return builder.build()


def test_a_failed_attempt_is_cut_differently_and_every_number_counts_once(cluster):
    statistics = cluster.run(ranges_topology(cluster), max_spout_pending=4)

    assert statistics.failed_attempts > 1
    cuts: dict[int, set[tuple[int, int]]] = {}
    for txid, partition, first, end in notes(cluster.notes / "cuts"):
        if partition == 0:
            cuts.setdefault(txid, set()).add((first, end))
    assert cuts[2] == {(7, 14), (7, 11)}
    assert cluster.hash("{ranges}:counts") == {str(number): 1 for number in range(PARTITIONS * WIDTH)}
    stored = sorted(field.partition(b":")[0] for field in cluster.client.hkeys("{ranges}:txbatch:metadata"))
    assert stored == [b"partition.0", b"partition.1", b"partition.2"]


def test_a_committer_is_told_of_every_txid_in_order_once_it_is_durable(cluster):
    statistics = cluster.run(ranges_topology(cluster), max_spout_pending=4)
    told = notes(cluster.notes / "told")
    assert [txid for txid, _, _ in told] == list(range(1, statistics.committed + 1))
    assert all(txid <= durable for txid, _, durable in told)

    cluster.run(ranges_topology(cluster), max_spout_pending=4)
    again = notes(cluster.notes / "told")[len(told) :]
    assert again, "a run begins by telling what was committed last"
    assert again == told[-len(again) :]


@pytest.mark.parametrize("kind", [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout])
def test_memory_spouts_take_their_contents_with_them(cluster, kind):
    spout = kind([[[n] for n in range(10)], [[n] for n in range(10, 14)]], ["number"], 4)
    builder = TransactionalTopologyBuilder("memory", "numbers", spout, parallelism=2)
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("numbers", ["number"])
    statistics = cluster.run(builder.build())
    assert statistics.committed == 3
    assert cluster.hash("{memory}:counts") == {str(number): 1 for number in range(14)}
