"""Spouts of transfers, one of each kind; how much of the input there is, and what a batch takes, is their user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from tests.support.scenarios.transfers import PARTITIONS, transfer


class Supply:
    """What there is to read; as it stands, nothing."""

    def end(self) -> int:
        """Rows of each partition, as far as is known."""
        return 0

    def take(self) -> int:
        """How many rows of a partition the next batch takes, if there are so many."""
        return 0

    def cut(self) -> int:
        """The same of a transaction that the coordinator cuts."""
        return self.take()

    def may_fail(self) -> None:
        """Called before a batch is emitted."""

    def committer(self) -> SpoutCommitter:
        """Of the spouts that have one."""
        raise NotImplementedError

    def all_read(self, ends: Mapping[int, int]) -> bool:
        """Whether every partition was read to its end."""
        return all(ends.get(partition, 0) >= self.end() for partition in range(PARTITIONS))


def rows(partition: int, first: int, end: int) -> list[list[Any]]:
    """Rows `first` up to but not including `end`, as they are emitted."""
    return [[partition, row, *transfer(partition, row)] for row in range(first, end)]


class _Transfers:
    """What the specs have in common."""

    def __init__(self, fingerprint: str, supply: Supply = Supply()) -> None:  # noqa: B008 - it has no state
        self._fingerprint, self.supply = fingerprint, supply

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(("partition", "row", "debit", "credit", "amount"))

    def fingerprint(self):
        return self._fingerprint


class CutSpout(_Transfers, ITransactionalSpout):
    """The driver cuts: its metadata is [first, end) of every partition."""

    def get_coordinator(self, conf, context):
        return _Cutter(self.supply)

    def get_emitter(self, conf, context):
        return _CutEmitter(self.supply, range(context.task_index, PARTITIONS, context.task_count))


class _Cutter(SpoutCoordinator):
    def __init__(self, supply: Supply) -> None:
        self._supply = supply

    def is_ready(self):
        return not self.is_exhausted()

    def initialize_transaction(self, txid, previous):
        ends = [end for _, end in previous] if previous else [0] * PARTITIONS
        return [[end, min(self._supply.end(), end + self._supply.cut())] for end in ends]

    def is_exhausted(self):
        last = self.run_so_far.last
        return self._supply.all_read({p: end for p, (_, end) in enumerate(last or [])})


class _CutEmitter(SpoutEmitter):
    def __init__(self, supply: Supply, own: range) -> None:
        self._supply, self._own = supply, own

    def emit_batch(self, attempt, metadata, collector):
        self._supply.may_fail()
        for partition in self._own:
            collector.emit_all(rows(partition, *metadata[partition]))


class _Partitions(PartitionedCoordinator):
    def __init__(self, supply: Supply, *, is_opaque: bool) -> None:
        self._supply, self._is_opaque = supply, is_opaque

    def number_of_partitions(self):
        return PARTITIONS

    def is_exhausted(self):
        positions = self.run_so_far.positions
        return self._supply.all_read(positions if self._is_opaque else {p: end for p, (_, end) in positions.items()})


class PartitionedSpout(_Transfers, IPartitionedTransactionalSpout):
    """The emitters cut, once: the metadata of a partition is [first, end)."""

    def get_coordinator(self, conf, context):
        return _Partitions(self.supply, is_opaque=False)

    def get_emitter(self, conf, context):
        return _PartitionReader(self.supply)


class _PartitionReader(PartitionedEmitter):
    def __init__(self, supply: Supply) -> None:
        self._supply = supply

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        self._supply.may_fail()
        first = last[1] if last else 0
        cut = [first, max(first, min(self._supply.end(), first + self._supply.take()))]
        collector.emit_all(rows(partition, *cut))
        return cut

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        self._supply.may_fail()
        collector.emit_all(rows(partition, *metadata))


class OpaqueSpout(_Transfers, IOpaquePartitionedTransactionalSpout):
    """The emitters cut, again in every attempt: a position is the end of what was read."""

    def get_coordinator(self, conf, context):
        return _Partitions(self.supply, is_opaque=True)

    def get_emitter(self, conf, context):
        return _OpaqueReader(self.supply)


class _OpaqueReader(OpaquePartitionedEmitter):
    def __init__(self, supply: Supply) -> None:
        self._supply = supply

    def emit_partition_batch(self, attempt, collector, partition, last):
        self._supply.may_fail()
        first = last or 0
        end = max(first, min(self._supply.end(), first + self._supply.take()))
        collector.emit_all(rows(partition, first, end))
        return end


class _Told(ICommitterTransactionalSpout):
    supply: Supply

    def get_committer(self, conf, context):
        return self.supply.committer()


class ToldCutSpout(_Told, CutSpout):
    """A `CutSpout` with a committer."""


class ToldPartitionedSpout(_Told, PartitionedSpout):
    """A `PartitionedSpout` with a committer."""


class ToldOpaqueSpout(_Told, OpaqueSpout):
    """An `OpaqueSpout` with a committer."""
