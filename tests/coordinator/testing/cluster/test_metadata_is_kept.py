"""What a spout returns as metadata is kept as it was then, whatever the spout does to it afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.spouts.opaque import OpaquePartitionedEmitter
from coordinator.spouts.partitioned import PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import SpoutCoordinator, SpoutEmitter
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.transactional.options import RunOptions
from state import FailedException, ListState
from tests.support.runs.collecting import Collecting
from tests.support.topologies.spout_kinds import OpaqueSpout, PartitionedSpout, WholeSpout

ROWS, TAKE = 24, 2


def moved(position: Any) -> Any:
    """The position after the next batch: the very object that was given, changed."""
    position = position or {"from": 0, "to": [0]}
    position["from"] = position["to"][0]
    position["to"][0] = min(ROWS, position["from"] + TAKE)
    return position


def spoil(position: Any) -> None:
    if position:
        position["to"][0] = 10_000


def emit_rows(collector, position):
    collector.emit_all(["row", n] for n in range(position["from"], position["to"][0]))
    spoil(position)


class Cutter(SpoutCoordinator):
    def resume(self):
        self.last_txid = self.run_so_far.last_txid
        spoil(self.run_so_far.last)

    def is_ready(self):
        spoil(self.run_so_far.last)
        return self.last_txid * TAKE < ROWS

    def initialize_transaction(self, txid, previous):
        self.last_txid = txid
        return moved(previous)

    def is_exhausted(self):
        spoil(self.run_so_far.last)
        return self.last_txid * TAKE >= ROWS


class Reader(SpoutEmitter):
    def emit_batch(self, attempt, metadata, collector):
        emit_rows(collector, metadata)


class OnePartition(PartitionedCoordinator):
    def number_of_partitions(self):
        return 1

    def is_exhausted(self):
        return self.run_so_far.last_txid * TAKE >= ROWS


class PartitionReader(PartitionedEmitter):
    def emit_partition_batch_new(self, attempt, collector, partition, last):
        position = moved(last)
        collector.emit_all(["row", n] for n in range(position["from"], position["to"][0]))
        return position

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        emit_rows(collector, metadata)


class OneOpaquePartition(PartitionedCoordinator):
    def number_of_partitions(self):
        return 1

    def is_exhausted(self):
        position = self.run_so_far.positions.get(0)
        read = position["to"][0] if position else 0
        spoil(position)
        return read + self.run_so_far.ahead * TAKE >= ROWS


class OpaqueReader(OpaquePartitionedEmitter):
    def emit_partition_batch(self, attempt, collector, partition, last):
        position = moved(last)
        collector.emit_all(["row", n] for n in range(position["from"], position["to"][0]))
        return position


every_kind = pytest.mark.parametrize(
    "spout",
    [
        WholeSpout(Cutter, Reader),
        PartitionedSpout(OnePartition, PartitionReader),
        OpaqueSpout(OneOpaquePartition, OpaqueReader),
    ],
    ids=lambda spout: type(spout).__name__,
)


def topology(spout):
    builder = TransactionalTopologyBuilder("moving", "numbers", spout)
    builder.set_committer_bolt("keep", Keep()).global_grouping("numbers")
    return builder.build()


class Keep(Collecting):
    """Keeps the numbers; fails attempts of the third transaction twice, so that later ones are replayed."""

    numbers = ListState("numbers", value=int)
    failures = 0

    def finish_batch(self):
        if self.attempt.txid == 3 and Keep.failures < 2:
            Keep.failures += 1
            raise FailedException("again")
        self.numbers.extend(self.column("number"))


@every_kind
@pytest.mark.parametrize("window", [1, 4, 8])
def test_a_spout_that_changes_its_metadata_in_place_loses_and_doubles_nothing(cluster, spout, window):
    Keep.failures = 0
    run = cluster.submit(topology(spout), options=RunOptions(max_spout_pending=window))
    run.run_until_idle()
    assert run.state("numbers") == list(range(ROWS))
    assert Keep.failures == 2


@every_kind
def test_a_run_that_goes_on_where_another_was_abandoned_is_not_misled_either(cluster, spout):
    Keep.failures = 2
    abandoned = cluster.submit(topology(spout), options=RunOptions(max_spout_pending=4))
    while abandoned.statistics.committed < 2:
        abandoned.tick()
    abandoned.close()
    run = cluster.submit(topology(spout), options=RunOptions(max_spout_pending=4))
    run.run_until_idle()
    assert run.state("numbers") == list(range(ROWS))
