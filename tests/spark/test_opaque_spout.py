"""An opaque spout on the real engine: replays are cut differently, and every number counts once."""

from __future__ import annotations

import pytest

from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from tests.support.spark.bolts import note, notes, once
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.mishaps import AtEnd, InStore, fail

pytestmark = [pytest.mark.spark, pytest.mark.redis, EITHER_ENGINE]

PARTITIONS, WIDTH = 3, 40
FIRST, LATER = 7, 4
"""So many numbers the first attempt at a txid takes of a partition, and every later one."""


class Ranges(IOpaquePartitionedTransactionalSpout):
    """Partition p holds the numbers from p * WIDTH on."""

    output_fields = ("number",)

    def __init__(self, folder):
        self.folder = str(folder)

    def get_coordinator(self, conf, context):
        return RangesCoordinator()

    def get_emitter(self, conf, context):
        return RangesEmitter(self.folder)


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


@pytest.mark.often("local")
def test_a_failed_attempt_is_cut_differently_and_every_number_counts_once(cluster):
    builder = TransactionalTopologyBuilder("ranges", "ranges", Ranges(cluster.notes), parallelism=2)
    work, store = AtEnd(fail, 2, cluster.notes / "work"), InStore(fail, 3, cluster.notes / "store")
    builder.set_bolt("work", work, parallelism=2).shuffle_grouping("ranges")
    builder.set_committer_bolt("store", store, parallelism=2).fields_grouping("work", ["number"])
    statistics = cluster.run(builder.build(), max_spout_pending=4)

    assert statistics.failed_attempts > 1
    cuts: dict[int, set[tuple[int, int]]] = {}
    for txid, partition, first, end in notes(cluster.notes / "cuts"):
        if partition == 0:
            cuts.setdefault(txid, set()).add((first, end))
    assert cuts[2] == {(7, 14), (7, 11)}
    assert cluster.hash("{ranges}:counts") == {str(number): 1 for number in range(PARTITIONS * WIDTH)}
    stored = sorted(field.partition(b":")[0] for field in cluster.client.hkeys("{ranges}:txbatch:metadata"))
    assert stored == [b"partition.0", b"partition.1", b"partition.2"]
