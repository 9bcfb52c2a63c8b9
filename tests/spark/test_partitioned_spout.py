"""A partitioned spout on the real engine: what was cut once is read again exactly, whatever failed."""

from __future__ import annotations

from collections import defaultdict

import pytest

from coordinated_bolt.transport.frames import FrameKind
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.coordinator import Coordinator
from tests.support.spark.bolts import Pass, Store, notes
from tests.support.spark.either_engine import EITHER_ENGINE
from tests.support.spark.faults import OneFrame, tasks_of
from tests.support.spark.mishaps import AtEnd, InStore, fail
from tests.support.spark.partitioned import PARTITIONS, TRANSACTIONS, WIDTH, Ranges

pytestmark = [pytest.mark.spark, pytest.mark.redis]


def ranges_topology(cluster, *, relay=None, store=None):
    spout = Ranges(cluster.notes / "cuts")
    builder = TransactionalTopologyBuilder("ranges", "ranges", spout, parallelism=2)
    builder.set_bolt("relay", relay or Pass(), parallelism=2).shuffle_grouping("ranges")
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


@EITHER_ENGINE
def test_partitions_are_cut_once_each_from_where_the_last_cut_ended(cluster):
    statistics = cluster.run(ranges_topology(cluster), max_spout_pending=6)

    assert (statistics.committed, statistics.failed_attempts) == (TRANSACTIONS, 0)
    assert len(notes(cluster.notes / "cuts")) == PARTITIONS * TRANSACTIONS
    assert_exact(cluster)


@EITHER_ENGINE
def test_after_a_failed_commit_phase_exactly_the_same_ranges_are_read_again(cluster):
    store = InStore(fail, 4, cluster.notes / "failed")
    statistics = cluster.run(ranges_topology(cluster, store=store), max_spout_pending=2 * TRANSACTIONS)

    first_cuts: dict[tuple[int, int], list[int]] = {}
    for how, txid, partition, cut in notes(cluster.notes / "cuts"):
        assert first_cuts.setdefault((txid, partition), cut) == cut
        assert how == "new" or txid >= 4
    assert statistics.failed_attempts == TRANSACTIONS - 4 + 1
    assert len(notes(cluster.notes / "cuts")) == PARTITIONS * (TRANSACTIONS + statistics.failed_attempts)
    assert_exact(cluster)


@EITHER_ENGINE
def test_after_a_failed_processing_phase_the_ranges_still_follow_each_other(cluster):
    relay = AtEnd(fail, 4, cluster.notes / "failed")
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
    fault = OneFrame(cluster.notes / "hit", tasks, 3, change, FrameKind.ACK, of_cuts=True)
    statistics = cluster.run(topology, frame_fault=fault, max_spout_pending=64)

    assert fault.marker.exists()
    assert statistics.failed_attempts == TRANSACTIONS - 3 + 1  # all in one wave
    assert_exact(cluster)


@EITHER_ENGINE
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
