"""A partitioned spout on the real engine: what was cut once is read again exactly, whatever failed."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.transport.frames import FrameKind
from coordinator.building.topology_builder import TransactionalTopologyBuilder
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.transactional.coordinator import Coordinator
from state.errors import FailedException
from tests.support.spark.bolts import Store, note, notes, once
from tests.support.spark.faults import OneFrame, tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

PARTITIONS, TRANSACTIONS, LARGEST = 3, 10, 9
WIDTH = TRANSACTIONS * LARGEST
"""Numbers of a partition: never more than are cut, so the last cuts take what there is."""


class Ranges(IPartitionedTransactionalSpout):
    """Each partition is a range of numbers; how much of it a new batch takes is drawn at random."""

    output_fields = ("number",)

    def __init__(self, path):
        self.path = str(path)

    def get_coordinator(self, conf, context):
        return RangesCoordinator()

    def get_emitter(self, conf, context):
        return RangesEmitter(self.path)


class RangesCoordinator(PartitionedCoordinator):
    def number_of_partitions(self):
        return PARTITIONS

    def is_ready(self):
        return self.run_so_far.last_txid < TRANSACTIONS

    def is_exhausted(self, number_of_transactions):
        return number_of_transactions >= TRANSACTIONS


class RangesEmitter(PartitionedEmitter):
    def __init__(self, path):
        self.path = path

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        first = last[1] if last else partition * WIDTH
        cut = [first, first + random.randint(1, LARGEST)]
        self.emit("new", attempt, collector, partition, cut)
        return cut

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        self.emit("again", attempt, collector, partition, metadata)

    def emit(self, how, attempt, collector, partition, cut):
        note(self.path, how, attempt.txid, partition, cut)
        collector.emit_all([number] for number in range(*cut))


class Relay(BaseBatchBolt):
    """Fails one txid, once."""

    output_fields = ("number",)

    def __init__(self, marker=None, txid=0):
        self.marker, self.txid = marker and str(marker), txid

    def execute(self, tup):
        self.collector.emit([tup["number"]])

    def finish_batch(self):
        if self.attempt.txid == self.txid and once(self.marker):
            raise FailedException("once")


class FailingStore(Store):
    """Fails one txid in the commit phase, once."""

    def __init__(self, marker, txid):
        self.marker, self.txid = str(marker), txid

    def finish_batch(self):
        super().finish_batch()
        if self.attempt.txid == self.txid and once(self.marker):
            raise FailedException("once")


def ranges_topology(cluster, *, relay=None, store=None):
    spout = Ranges(cluster.notes / "cuts")
    builder = TransactionalTopologyBuilder("ranges", "ranges", spout, parallelism=2)
    builder.set_bolt("relay", relay or Relay(), parallelism=2).shuffle_grouping("ranges")
    builder.set_committer_bolt("store", store or Store(), parallelism=2).fields_grouping("relay", ["number"])
    return builder.build()


def last_cuts(cluster) -> dict[int, dict[int, list[int]]]:
    """Partition -> txid -> the range its last attempt emitted."""
    cuts: dict[int, dict[int, list[int]]] = defaultdict(dict)
    for _, txid, partition, cut in notes(cluster.notes / "cuts"):
        cuts[partition][txid] = cut
    return cuts


def assert_exact(cluster):
    """Ranges follow each other without gap or overlap, and exactly their numbers were counted, once."""
    cuts = last_cuts(cluster)
    assert sorted(cuts) == list(range(PARTITIONS))
    for partition, by_txid in cuts.items():
        ends = [partition * WIDTH] + [by_txid[txid][1] for txid in range(1, TRANSACTIONS + 1)]
        assert [by_txid[txid][0] for txid in range(1, TRANSACTIONS + 1)] == ends[:-1]
    numbers = [number for by_txid in cuts.values() for cut in by_txid.values() for number in range(*cut)]
    assert cluster.hash("{ranges}:counts") == {str(number): 1 for number in numbers}


def test_partitions_are_cut_once_each_from_where_the_last_cut_ended(cluster):
    statistics = cluster.run(ranges_topology(cluster), max_spout_pending=6)

    assert (statistics.committed, statistics.failed_attempts) == (TRANSACTIONS, 0)
    assert len(notes(cluster.notes / "cuts")) == PARTITIONS * TRANSACTIONS
    assert_exact(cluster)


def test_after_a_failed_commit_phase_exactly_the_same_ranges_are_read_again(cluster):
    store = FailingStore(cluster.notes / "failed", txid=4)
    statistics = cluster.run(ranges_topology(cluster, store=store), max_spout_pending=2 * TRANSACTIONS)

    first_cuts: dict[tuple[int, int], list[int]] = {}
    for how, txid, partition, cut in notes(cluster.notes / "cuts"):
        assert first_cuts.setdefault((txid, partition), cut) == cut
        assert how == "new" or txid >= 4
    assert statistics.failed_attempts == TRANSACTIONS - 4 + 1
    assert len(notes(cluster.notes / "cuts")) == PARTITIONS * (TRANSACTIONS + statistics.failed_attempts)
    assert_exact(cluster)


def test_after_a_failed_processing_phase_the_ranges_still_follow_each_other(cluster):
    relay = Relay(cluster.notes / "failed", txid=4)
    statistics = cluster.run(ranges_topology(cluster, relay=relay), max_spout_pending=2 * TRANSACTIONS)

    assert statistics.failed_attempts == TRANSACTIONS - 4 + 1
    cuts: dict[tuple[int, int], set[tuple[int, int]]] = defaultdict(set)
    for _, txid, partition, cut in notes(cluster.notes / "cuts"):
        cuts[txid, partition].add(tuple(cut))
    assert all(len(cuts[txid, partition]) == 1 for txid in (1, 2, 3) for partition in range(PARTITIONS))
    assert_exact(cluster)


@pytest.mark.parametrize("change", ["drop", "double", "alter"])
def test_metadata_that_is_lost_doubled_or_altered_on_its_way_fails_its_attempt(cluster, change):
    topology = ranges_topology(cluster)
    tasks = tasks_of(topology, "__acker")
    fault = OneFrame(cluster.notes / "hit", tasks, 3, change, FrameKind.META)
    statistics = cluster.run(topology, frame_fault=fault)

    assert fault.marker.exists()
    assert statistics.failed_attempts == TRANSACTIONS - 3 + 1
    assert_exact(cluster)


def test_a_second_run_goes_on_where_the_first_has_ended(cluster):
    coordinators: list[Coordinator] = []

    def drain_early(statistics):
        if statistics.committed >= 2:
            coordinators[0].drain()

    topology = ranges_topology(cluster)
    first = cluster.run(topology, max_spout_pending=2, on_start=coordinators.append, on_progress=drain_early)
    second = cluster.run(ranges_topology(cluster), max_spout_pending=4)

    assert 2 <= first.committed < TRANSACTIONS
    assert (first.committed + second.committed, second.last_txid) == (TRANSACTIONS, TRANSACTIONS)
    assert_exact(cluster)
