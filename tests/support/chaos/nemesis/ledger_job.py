"""The job under fire: transfers between accounts, whose balances add up to zero whatever happens.

Apart from the balances it keeps, for each partition, how many rows are in, the sum of their weights and, if its
committers read state, a checksum over their order; and the txid that wrote last. A row that is lost, doubled or
exchanged, a transaction that is torn or out of order: each of them shows.

The input has no end until its file says so: the file holds the number of rows of each partition once it is known.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ValueState
from state.attempt import TransactionAttempt
from tests.support.chaos.nemesis.transfers import PARTITIONS, chained, transfer, weight

TAKE = 4
"""Rows of each partition in a transaction; where the boundaries move, from none to twice as many."""
SHARDS = 3
ENDLESS = 1 << 40
FIELDS = ("partition", "row", "debit", "credit", "amount")


class Input:
    """How much of the input there is.

    Args:
        end_path: file that holds the number of rows of each partition; while it is missing there is no end.
    """

    def __init__(self, end_path: str) -> None:
        self._path = Path(end_path)
        self._end = ENDLESS

    def end(self) -> int:
        """Rows of each partition."""
        if self._end == ENDLESS and self._path.exists():
            self._end = int(self._path.read_text(encoding="ascii"))
        return self._end

    def all_read(self, ends: Mapping[int, int]) -> bool:
        """Whether every partition was read to its end."""
        return all(ends.get(partition, 0) >= self.end() for partition in range(PARTITIONS))


def rows(partition: int, first: int, end: int) -> list[list[Any]]:
    """Rows `first` up to but not including `end`, as they are emitted."""
    return [[partition, row, *transfer(partition, row)] for row in range(first, end)]


class _Spout:
    def __init__(self, end_path: str) -> None:
        self.input = Input(end_path)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(FIELDS)

    def fingerprint(self):
        return "transfers"


class CutSpout(_Spout, ITransactionalSpout):
    """The driver cuts: a transaction's metadata is the first row of every partition, and how many."""

    def get_coordinator(self, conf, context):
        return _Cutter(self.input)

    def get_emitter(self, conf, context):
        return _CutEmitter(context.task_index, context.task_count)


class _Cutter(SpoutCoordinator):
    def __init__(self, source: Input) -> None:
        self._input, self._next = source, 0

    def resume(self):
        self._next = sum(self.run_so_far.last) if self.run_so_far.last else 0

    def is_ready(self):
        return self._next < self._input.end()

    def initialize_transaction(self, txid, previous):
        first = self._next
        self._next = min(first + TAKE, self._input.end())
        return [first, self._next - first]

    def is_exhausted(self):
        return self._next >= self._input.end()


class _CutEmitter(SpoutEmitter):
    def __init__(self, task_index: int, task_count: int) -> None:
        self._own = range(task_index, PARTITIONS, task_count)

    def emit_batch(self, attempt, metadata, collector):
        first, count = metadata
        for partition in self._own:
            collector.emit_all(rows(partition, first, first + count))


class Told(SpoutCommitter):
    """Is told of every transaction that is durable, some of them twice."""

    def commit(self, attempt: TransactionAttempt) -> None:
        """Does nothing; what matters is that a driver may die here."""


class ToldSpout(CutSpout, ICommitterTransactionalSpout):
    """The same with a committer."""

    destruction = ""

    def get_committer(self, conf, context):
        return Told()


class PartitionedSpout(_Spout, IPartitionedTransactionalSpout):
    """The emitters cut, once: the metadata of a partition is [first, end)."""

    def get_coordinator(self, conf, context):
        return _Partitions(self.input)

    def get_emitter(self, conf, context):
        return _PartitionReader(self.input)


class _Partitions(PartitionedCoordinator):
    def __init__(self, source: Input) -> None:
        self._input = source

    def number_of_partitions(self):
        return PARTITIONS

    def is_exhausted(self):
        return self._input.all_read({p: end for p, (_, end) in self.run_so_far.positions.items()})


class _PartitionReader(PartitionedEmitter):
    def __init__(self, source: Input) -> None:
        self._input = source

    def emit_partition_batch_new(self, attempt, collector, partition, last):
        first = last[1] if last else 0
        cut = [first, max(first, min(self._input.end(), first + random.randint(0, 2 * TAKE)))]
        collector.emit_all(rows(partition, *cut))
        return cut

    def emit_partition_batch(self, attempt, collector, partition, metadata):
        collector.emit_all(rows(partition, *metadata))


class OpaqueSpout(_Spout, IOpaquePartitionedTransactionalSpout):
    """The emitters cut, and cut otherwise in every attempt: a position is the end of what was read."""

    def get_coordinator(self, conf, context):
        return _OpaquePartitions(self.input)

    def get_emitter(self, conf, context):
        return _OpaqueReader(self.input)


class _OpaquePartitions(PartitionedCoordinator):
    def __init__(self, source: Input) -> None:
        self._input = source

    def number_of_partitions(self):
        return PARTITIONS

    def is_exhausted(self):
        return self._input.all_read(self.run_so_far.positions)


class _OpaqueReader(OpaquePartitionedEmitter):
    def __init__(self, source: Input) -> None:
        self._input = source

    def emit_partition_batch(self, attempt, collector, partition, last):
        first = last or 0
        end = max(first, min(self._input.end(), first + random.randint(0, 2 * TAKE)))
        collector.emit_all(rows(partition, first, end))
        return end


SPOUTS: dict[str, Any] = {"cut": CutSpout, "told": ToldSpout, "partitioned": PartitionedSpout, "opaque": OpaqueSpout}


class Post(BaseBatchBolt):
    """Makes two postings of each transfer, each on one of the shards of its account, and hands the row on."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(("shard", "amount"))
        declarer.declare_stream("audit", ("partition", "row"))

    def execute(self, tup):
        partition, row, debit, credit, amount = tup
        self.collector.emit([f"{debit}/{row % SHARDS}", -amount])
        self.collector.emit([f"{credit}/{(row + 1) % SHARDS}", amount])
        self.collector.emit([partition, row], "audit")


class Balances(BaseBatchBolt, ICommitter):
    """Adds up the postings of its shards."""

    balances = HashState("balances", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.amounts: Counter[str] = Counter()

    def execute(self, tup):
        self.amounts[tup["shard"]] += tup["amount"]

    def finish_batch(self):
        self.balances.increment_many(self.amounts)


class Audit(BaseBatchBolt, ICommitter):
    """Counts the rows of each partition, adds up their weights, and notes the txid; reads nothing."""

    seen = HashState("seen", value=int)
    weights = HashState("weights", value=int)
    order = HashState("order", value=int)
    last = ValueState("last", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.txid = attempt.txid
        self.rows: dict[int, list[int]] = {}

    def execute(self, tup):
        self.rows.setdefault(tup["partition"], []).append(tup["row"])

    def finish_batch(self):
        self.last.put(self.txid)
        for partition, found in self.rows.items():
            self.seen.increment(f"p{partition}", len(found))
            self.weights.increment(f"p{partition}", sum(weight(partition, row) for row in found))


class ReadingAudit(Audit):
    """The same, with a checksum over the rows in their order, which has to be read before it is written."""

    def finish_batch(self):
        super().finish_batch()
        before = self.order.get_many([f"p{partition}" for partition in self.rows])
        for partition, found in self.rows.items():
            checksum = before.get(f"p{partition}") or 0
            for row in sorted(found):
                checksum = chained(checksum, weight(partition, row))
            self.order.put(f"p{partition}", checksum)


STATES = (Balances.balances, Audit.seen, Audit.weights, Audit.order, Audit.last)


def topology(kind: str, reads: bool | str, end_path: str, topology_id: str, tasks: int = 2) -> Topology:
    """Returns the topology.

    Args:
        kind: of spout, one of `SPOUTS`.
        reads: whether a committer reads state, so that nothing commits in the wave's own job.
        end_path: see `Input`.
        topology_id: names the topology and its keys.
        tasks: of all components but one.
    """
    builder = TransactionalTopologyBuilder(topology_id, "transfers", SPOUTS[kind](end_path), parallelism=int(tasks))
    builder.set_bolt("post", Post(), int(tasks)).shuffle_grouping("transfers")
    builder.set_committer_bolt("balances", Balances(), int(tasks)).fields_grouping("post", ("shard",))
    audit = ReadingAudit() if str(reads).lower() == "true" else Audit()
    builder.set_committer_bolt("audit", audit, 1).global_grouping("post", "audit")
    return builder.build()
