"""Spouts whose input is in memory, for tests of topologies: small, exact, and shipped with their contents.

The whole input is pickled with the spec, so keep it below a few megabytes. Nothing is kept in modules: two
runs in one process, or ten workers on a cluster, know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from coordinated_bolt import BatchOutputCollector, OutputFieldsDeclarer, TopologyContext
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedCoordinator,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state import TopologyError, TransactionAttempt, digest64, pack

Row = Sequence[Any]
Partitions = Mapping[int, Sequence[Row]] | Sequence[Sequence[Row]]
Unavailable = Mapping[int, Collection[int]] | Callable[[TransactionAttempt], Collection[int]]
"""Txid -> partitions that cannot be read in it, or a function of the attempt that says which."""


class MemoryTransactionalSpout(IPartitionedTransactionalSpout):
    """Rows by partition; every transaction takes `take` of each. Ends when all are read.

    Args:
        partitions: partition -> rows, or a list of the rows of each; a row is a list or tuple of values.
        fields: names of the values.
        take: rows a transaction takes of each partition.
        empty_batches: transactions that follow when all is read.

    Raises:
        TopologyError: a parameter is no good.

    Source: backtype.storm.testing.MemoryTransactionalSpout.
    Differs from Storm: it ends; there, empty transactions follow for ever.
    """

    def __init__(self, partitions: Partitions, fields: Sequence[str], take: int, *, empty_batches: int = 0) -> None:
        self._input = _Input(self, partitions, fields, take, empty_batches)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._input.fields)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        return _MemoryCoordinator(self._input)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        return _MemoryEmitter(self._input)

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}: {self._input.fingerprint()}"


class OpaqueMemoryTransactionalSpout(IOpaquePartitionedTransactionalSpout):
    """The same as `MemoryTransactionalSpout`, opaque: a partition may be away when its turn comes.

    Args:
        partitions: partition -> rows, or a list of the rows of each; a row is a list or tuple of values.
        fields: names of the values.
        take: rows a transaction takes of each partition that is there.
        unavailable: txid -> partitions that are away in all its attempts, or a function of the attempt. It runs
            wherever a partition is read, so it pickles and answers the same whenever it is asked.
        empty_batches: transactions that follow when all is read.

    Raises:
        TopologyError: a parameter is no good.

    Source: backtype.storm.testing.OpaqueMemoryTransactionalSpout.
    Differs from Storm: partitions are away by txid, not from one moment of the test to another; it ends.
    """

    def __init__(
        self,
        partitions: Partitions,
        fields: Sequence[str],
        take: int,
        *,
        unavailable: Unavailable | None = None,
        empty_batches: int = 0,
    ) -> None:
        self._input = _Input(self, partitions, fields, take, empty_batches)
        if unavailable is not None and not callable(unavailable) and not isinstance(unavailable, Mapping):
            raise _wrong(self, "unavailable", unavailable, "a mapping from txids to partitions, or a function")
        self._unavailable = unavailable if callable(unavailable) else dict(unavailable or {})

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._input.fields)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedCoordinator:
        return _OpaqueMemoryCoordinator(self._input)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        return _OpaqueMemoryEmitter(self._input, self._unavailable)

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}: {self._input.fingerprint()}"


class FixedBatchesSpout(ITransactionalSpout):
    """Transaction k emits exactly ``batches[k - 1]``, row by row in turn from each of its tasks.

    Args:
        batches: the rows of each transaction; a row is a list or tuple of values.
        fields: names of the values.

    Raises:
        TopologyError: a row has not as many values as there are fields.
    """

    def __init__(self, batches: Sequence[Sequence[Row]], fields: Sequence[str]) -> None:
        self._fields = _checked_fields(self, fields)
        if not isinstance(batches, Sequence):
            raise _wrong(self, "batches", batches, "a list of the rows of each")
        self._batches = [_checked_rows(self, "a batch", self._fields, batch) for batch in batches]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._fields)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        return _FixedBatchesCoordinator(len(self._batches))

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return _FixedBatchesEmitter(self._batches, context)

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}: {len(self._batches)} batches, digest {_digest(self._batches)}"


class _Input:
    """The contents of a memory spout. A position is the number of batches that were read of a partition."""

    def __init__(
        self, spout: object, partitions: Partitions, fields: Sequence[str], take: int, empty_batches: int
    ) -> None:
        self.fields = _checked_fields(spout, fields)
        self.take = _checked_count(spout, "take", take, least=1)
        self.empty_batches = _checked_count(spout, "empty_batches", empty_batches, least=0)
        if not isinstance(partitions, (Mapping, Sequence)):
            raise _wrong(spout, "partitions", partitions, "a list of the rows of each, or a mapping")
        given = partitions if isinstance(partitions, Mapping) else dict(enumerate(partitions))
        for partition in given:
            _checked_count(spout, "a partition", partition, least=0)
        self.partitions = [
            _checked_rows(spout, "a partition", self.fields, given.get(partition, ()))
            for partition in range(max(given, default=-1) + 1)
        ]

    def batch(self, partition: int, position: int) -> list[list[Any]]:
        """The rows that follow a position; none behind the end."""
        return self.partitions[partition][position * self.take : (position + 1) * self.take]

    def batch_counts(self) -> list[int]:
        """How many batches each partition is read in, the empty ones included."""
        return [-(-len(rows) // self.take) + self.empty_batches for rows in self.partitions]

    def fingerprint(self) -> str:
        counts = f"{len(self.partitions)} partitions, take {self.take}, {self.empty_batches} empty batches"
        return f"{counts}, digest {_digest(self.partitions)}"


class _MemoryCoordinator(PartitionedCoordinator):
    def __init__(self, contents: _Input) -> None:
        self._partition_count = len(contents.partitions)
        self._transactions = max(contents.batch_counts(), default=0)

    def number_of_partitions(self) -> int:
        return self._partition_count

    def is_exhausted(self, number_of_transactions: int) -> bool:
        return number_of_transactions >= self._transactions

    def progress(self, number_of_transactions: int) -> float | None:
        return min(1.0, number_of_transactions / self._transactions) if self._transactions else None


class _MemoryEmitter(PartitionedEmitter):
    def __init__(self, contents: _Input) -> None:
        self._input = contents

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        metadata = (last or 0) + 1
        self.emit_partition_batch(attempt, collector, partition, metadata)
        return metadata

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: Any
    ) -> None:
        collector.emit_all(self._input.batch(partition, metadata - 1))


class _OpaqueMemoryCoordinator(OpaquePartitionedCoordinator):
    def __init__(self, contents: _Input) -> None:
        self._batch_counts = contents.batch_counts()

    def number_of_partitions(self) -> int:
        return len(self._batch_counts)

    def is_exhausted(self, positions: Mapping[int, Any], pending: int) -> bool:
        left = [count - positions.get(partition, 0) for partition, count in enumerate(self._batch_counts)]
        return max(left, default=0) <= pending

    def progress(self, positions: Mapping[int, Any]) -> float | None:
        read = sum(min(count, positions.get(partition, 0)) for partition, count in enumerate(self._batch_counts))
        return read / sum(self._batch_counts) if any(self._batch_counts) else None


class _OpaqueMemoryEmitter(OpaquePartitionedEmitter):
    def __init__(self, contents: _Input, unavailable: Unavailable) -> None:
        self._input = contents
        self._unavailable = unavailable

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        away = self._unavailable(attempt) if callable(self._unavailable) else self._unavailable.get(attempt.txid, ())
        if partition in away:
            return last
        position = last or 0
        collector.emit_all(self._input.batch(partition, position))
        return position + 1


class _FixedBatchesCoordinator(SpoutCoordinator):
    def __init__(self, batch_count: int) -> None:
        self._batch_count = batch_count
        self._last_txid = 0

    def resume(self, last_txid: int, last: Any) -> None:
        self._last_txid = last_txid

    def is_ready(self) -> bool:
        return self._last_txid < self._batch_count

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        self._last_txid = txid
        return txid - 1

    def is_exhausted(self, last: Any) -> bool:
        return self._last_txid >= self._batch_count

    def progress(self, last: Any) -> float | None:
        return min(1.0, self._last_txid / self._batch_count) if self._batch_count else None


class _FixedBatchesEmitter(SpoutEmitter):
    def __init__(self, batches: Sequence[Sequence[Row]], context: TopologyContext) -> None:
        self._batches = batches
        self._context = context

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        collector.emit_all(self._batches[metadata][self._context.task_index :: self._context.task_count])


def _digest(rows: Any) -> str:
    return f"{digest64(pack(rows)):016x}"


def _checked_fields(spout: object, fields: Sequence[str]) -> tuple[str, ...]:
    if isinstance(fields, str):
        raise TopologyError(
            f"fields of {type(spout).__name__} takes a list of names, not {fields!r}; write [{fields!r}]"
        )
    return tuple(fields)


def _checked_count(spout: object, what: str, count: Any, *, least: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise TopologyError(f"{what} of {type(spout).__name__} is {count!r}; give an integer from {least}")
    return count


def _checked_rows(spout: object, what: str, fields: tuple[str, ...], rows: Sequence[Row]) -> list[list[Any]]:
    if not isinstance(rows, Sequence):
        raise _wrong(spout, what, rows, "a list of rows")
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != len(fields):
            raise TopologyError(
                f"row {row!r} of {type(spout).__name__} is not a list of {len(fields)} values, as its fields "
                f"{list(fields)} ask for"
            )
    return [list(row) for row in rows]


def _wrong(spout: object, what: str, given: object, wanted: str) -> TopologyError:
    return TopologyError(f"{what} of {type(spout).__name__} is {given!r}; give {wanted}")
