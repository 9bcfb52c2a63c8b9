"""P-14: what a spout has stored of a batch is returned unchanged, in the same run and in the next one."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from coordinator.spouts.opaque import OpaquePartitionedEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import SpoutCoordinator, SpoutEmitter
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from tests.support.topologies.components import Count
from tests.support.topologies.spout_kinds import OpaqueSpout, PartitionedSpout, WholeSpout

pytestmark = pytest.mark.case(id="P-14")


def described(txid):
    """What JSON would bring back as something else, or not at all."""
    return {"txid": txid, 5: (1, 2**70), "rest": [b"\x00\xff", None, 1.0, True, (("a",), {"b": frozenset({1})})]}


class Given:
    """What spouts were given back: the last metadata below each txid, and what emitters were told to emit."""

    last: ClassVar[dict[int, Any]] = {}
    emitted: ClassVar[dict[int, Any]] = {}
    transactions: ClassVar[int] = 0


@pytest.fixture(autouse=True)
def _fresh():
    Given.last.clear()
    Given.emitted.clear()


class Whole(SpoutCoordinator):
    last_txid = 0

    def resume(self):
        self.last_txid = self.run_so_far.last_txid

    def is_ready(self):
        return self.last_txid < Given.transactions

    def initialize_transaction(self, txid, previous):
        self.last_txid, Given.last[txid] = txid, previous
        return described(txid)

    def is_exhausted(self):
        return self.run_so_far.last is not None and self.run_so_far.last["txid"] >= Given.transactions


class WholeEmitter(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        Given.emitted[attempt.txid] = metadata
        collector.emit(["a", attempt.txid])


class Parts(PartitionedCoordinator):
    def number_of_partitions(self):
        return 1

    def is_exhausted(self):
        return self.run_so_far.last_txid >= Given.transactions


class PartsEmitter(PartitionedEmitter):
    def emit_partition_batch_new(self, attempt, collector, partition, last):
        Given.last[attempt.txid] = last
        Given.emitted[attempt.txid] = described(attempt.txid)
        collector.emit(["a", attempt.txid])
        return described(attempt.txid)

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        Given.emitted[attempt.txid] = metadata
        collector.emit(["a", attempt.txid])


class Opaque(PartitionedCoordinator):
    def number_of_partitions(self):
        return 1

    def is_exhausted(self):
        return (
            bool(self.run_so_far.positions)
            and self.run_so_far.positions[0]["txid"] + self.run_so_far.ahead >= Given.transactions
        )


class OpaqueEmitter(OpaquePartitionedEmitter):
    def emit_partition_batch(self, attempt, collector, partition, last):
        Given.last[attempt.txid] = last
        Given.emitted[attempt.txid] = described(attempt.txid)
        collector.emit(["a", attempt.txid])
        return described(attempt.txid)


def topology(spout):
    builder = TransactionalTopologyBuilder("test", "lines", spout)
    builder.set_bolt("count", Count()).shuffle_grouping("lines")
    return builder.build()


@pytest.mark.parametrize(
    "spout",
    [WholeSpout(Whole, WholeEmitter), PartitionedSpout(Parts, PartsEmitter), OpaqueSpout(Opaque, OpaqueEmitter)],
    ids=lambda spout: type(spout).__name__,
)
def test_metadata_comes_back_from_the_store_equal_and_of_the_same_types(spout):
    with LocalCluster() as cluster:
        for Given.transactions in (2, 4):  # the second run begins with what the first has stored
            run = cluster.submit(topology(spout))
            run.run_until_idle()
            assert run.is_done
            run.close()
    assert repr(Given.last) == repr({txid: described(txid - 1) if txid > 1 else None for txid in (1, 2, 3, 4)})
    assert repr(Given.emitted) == repr({txid: described(txid) for txid in (1, 2, 3, 4)})
