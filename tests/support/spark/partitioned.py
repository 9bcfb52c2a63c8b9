"""A partitioned spout on Spark, and bolts that fail on the way: ranges of numbers, noted where they are read."""

from __future__ import annotations

import random

from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from tests.support.spark.bolts import note

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

    def is_exhausted(self):
        return self.run_so_far.last_txid >= TRANSACTIONS


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
