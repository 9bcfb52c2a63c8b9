"""Spouts whose input is in memory, for tests of topologies: small, exact, and shipped with their contents.

The whole input is pickled with the spec, so keep it below a few megabytes. Modules keep no state: two runs in one
process, or ten workers on a cluster, do not affect each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.component import IComponent
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.components.spouts import BaseSpout
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinated_bolt.streams.records import RowsOf, RowT, is_record_class, record_fields
from coordinator.spouts.memory_input import (
    MemoryInput,
    MemoryPosition,
    Partitions,
    Row,
    checked_fields,
    checked_rows,
    digest_of,
    digest_of_rows,
    words_of,
    wrong,
)
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.run_so_far import FormerInput, InputChange
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt
from state.errors import SourceError
from state.troubles import Trouble

Unavailable = Mapping[int, Collection[int]] | Callable[[TransactionAttempt], Collection[int]]
"""Txid -> partitions that are unavailable in it, or a function from the attempt to these partitions."""


class _OfMemory(IComponent):
    """The base of both spouts with partitions."""

    _input: MemoryInput

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._input.fields)

    def fingerprint(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}: {self._input.fingerprint()}"

    def describe(self, partition: int, metadata: Any) -> Sequence[str]:
        return words_of(metadata)


class MemoryTransactionalSpout(_OfMemory, IPartitionedTransactionalSpout):
    """Emits rows by partition: every transaction takes `take` rows of each partition. The input ends when all are read.

    A partition's position is the number of rows read. So `take` may change between runs, rows may be appended, and
    partitions may be added.

    Args:
        partitions: partition -> rows, or a list of the rows of each; a row is a list or tuple of values.
        fields: names of the values.
        take: rows that a transaction takes of each partition.
        empty_batches: number of empty transactions that follow when all rows are read.

    Raises:
        TopologyError: a parameter is invalid.

    Source: backtype.storm.testing.MemoryTransactionalSpout.
    Differs from Storm: the input ends; in Storm, empty transactions follow for ever.
    """

    def __init__(self, partitions: Partitions, fields: Sequence[str], take: int, *, empty_batches: int = 0) -> None:
        self._input = MemoryInput(self, partitions, fields, take, empty_batches)

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        return _MemoryCoordinator(self._input, context)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedEmitter:
        return _MemoryEmitter(self._input, context)


class OpaqueMemoryTransactionalSpout(_OfMemory, IOpaquePartitionedTransactionalSpout):
    """Emits rows as `MemoryTransactionalSpout` does, but is opaque: partitions may be unavailable for a while.

    Args:
        partitions: partition -> rows, or a list of the rows of each; a row is a list or tuple of values.
        fields: names of the values.
        take: rows that a transaction takes of each available partition.
        unavailable: txid -> partitions that are unavailable in all its attempts, or a function of the attempt. The
            function is called wherever a partition is read, so it must pickle and always return the same.
        empty_batches: number of empty transactions that follow when all rows are read.

    Raises:
        TopologyError: a parameter is invalid.

    Source: backtype.storm.testing.OpaqueMemoryTransactionalSpout.
    Differs from Storm: partitions are unavailable by txid, not by time; the input ends.
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
        self._input = MemoryInput(self, partitions, fields, take, empty_batches)
        if unavailable is not None and not callable(unavailable) and not isinstance(unavailable, Mapping):
            raise wrong(self, "unavailable", unavailable, "a mapping from txids to partitions, or a function")
        self._unavailable = unavailable if callable(unavailable) else dict(unavailable or {})

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionedCoordinator:
        return _MemoryCoordinator(self._input, context)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaquePartitionedEmitter:
        return _OpaqueMemoryEmitter(self._input, self._unavailable, context)


class FixedBatchesSpout(ITransactionalSpout, RowsOf[RowT]):
    """Emits exactly ``batches[k - 1]`` in transaction k; its tasks take turns, row by row.

    Args:
        batches: the rows of each transaction; a row is a list or tuple of values, or an object of a record class.
        fields: names of the values, or a NamedTuple or dataclass with these names.

    Raises:
        TopologyError: a row does not have one value for each field, or one that cannot travel.
    """

    def __init__(self, batches: Sequence[Sequence[Row]], fields: type[RowT] | Sequence[str]) -> None:
        is_record = is_record_class(fields)
        self._fields = record_fields(fields) if is_record else checked_fields(self, fields)  # type: ignore[arg-type]
        self._declared = fields if is_record else self._fields
        if not isinstance(batches, Sequence):
            raise wrong(self, "batches", batches, "a list of the rows of each")
        self._batches = [
            checked_rows(self, f"batch {number}", self._fields, batch) for number, batch in enumerate(batches)
        ]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._declared)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_declared": self._fields}  # executors may not know the module of a class

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        return _FixedBatchesCoordinator(self._batches)

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return _FixedBatchesEmitter(self._batches, context)

    def recut(self, is_coarser: bool) -> FixedBatchesSpout[RowT]:
        """Returns the same rows in one transaction, or in one each (for proofs)."""
        rows = [row for batch in self._batches for row in batch]
        return FixedBatchesSpout([rows] if is_coarser else [[row] for row in rows], self._declared)

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}: {len(self._batches)} batches, digest {digest_of(self._batches)}"

    def describe(self, metadata: Any) -> Sequence[str]:
        return words_of_batch(metadata)


def words_of_batch(metadata: Any) -> list[str]:
    """Returns the number of a transaction's batch, in words.

    Raises:
        SourceError: the metadata is not from a `FixedBatchesSpout`.
    """
    match metadata:
        case [int(number), int(_)]:
            return [f"batch {number + 1:,} of the list"]
    raise SourceError(f"{metadata!r:.80} is not the number of a batch").about(Trouble.OTHER_SOURCE)


class _MemoryCoordinator(PartitionedCoordinator):
    """The coordinator of both memory spouts."""

    def __init__(self, contents: MemoryInput, context: TopologyContext) -> None:
        self._input = contents
        self._topology_id = context.topology_id

    def number_of_partitions(self) -> int:
        return len(self._input.partitions)

    def compare(self, former: FormerInput) -> InputChange:
        return self._input.compare(former, self._topology_id)

    def is_exhausted(self) -> bool:
        """Returns whether the started transactions that are not in the positions yet read all remaining rows."""
        return max(self._input.batches_left(self._positions()), default=0) <= self.run_so_far.ahead

    def progress(self) -> float | None:
        return self._input.progress(self._positions())

    def _positions(self) -> list[MemoryPosition]:
        return self._input.positions(self.run_so_far.positions, self._topology_id)


class _MemoryEmitter(PartitionedEmitter):
    def __init__(self, contents: MemoryInput, context: TopologyContext) -> None:
        self._input = contents
        self._topology_id = context.topology_id

    def emit_partition_batch_new(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        position = self._input.after(partition, MemoryPosition.from_plain(last, partition, self._topology_id))
        collector.emit_all(self._input.rows(partition, position))
        return position.to_plain()

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, metadata: Any
    ) -> None:
        position = MemoryPosition.from_plain(metadata, partition, self._topology_id)
        collector.emit_all(self._input.rows(partition, position))


class _OpaqueMemoryEmitter(OpaquePartitionedEmitter):
    def __init__(self, contents: MemoryInput, unavailable: Unavailable, context: TopologyContext) -> None:
        self._reads = _MemoryEmitter(contents, context)
        self._unavailable = unavailable

    def emit_partition_batch(
        self, attempt: TransactionAttempt, collector: BatchOutputCollector, partition: int, last: Any
    ) -> Any:
        away = self._unavailable(attempt) if callable(self._unavailable) else self._unavailable.get(attempt.txid, ())
        if partition in away:
            return last
        return self._reads.emit_partition_batch_new(attempt, collector, partition, last)


class _FixedBatchesCoordinator(SpoutCoordinator):
    """Cuts one batch per transaction; the metadata is its number, from 0, and a digest of all batches up to it."""

    def __init__(self, batches: Sequence[Sequence[Sequence[Any]]]) -> None:
        self._batches = batches
        self._batch_count = len(batches)
        self._digests = [0]

    def is_ready(self) -> bool:
        return _taken(self.run_so_far.last) < self._batch_count

    def initialize_transaction(self, txid: int, previous: Any) -> Any:
        number = _taken(previous)  # with several inputs, not every txid has a batch of this one
        return [number, self._digest(number + 1)]

    def compare(self, former: FormerInput) -> InputChange | None:
        if former.is_same or not former.last_txid:
            return InputChange()
        match former.last:
            case [int(number), int(digest)]:
                if number >= self._batch_count:
                    story = f"{number + 1} batches were read, but the input has {self._batch_count} now"
                elif digest != self._digest(number + 1):
                    story = f"the first {number + 1} batches are not those that were read"
                else:
                    return InputChange()
                return InputChange(changed=(story,))
        return None

    def is_empty(self) -> bool:
        return not self._batch_count

    def is_exhausted(self) -> bool:
        return _taken(self.run_so_far.last) >= self._batch_count

    def progress(self) -> float | None:
        return min(1.0, _taken(self.run_so_far.last) / self._batch_count) if self._batch_count else None

    def _digest(self, batch_count: int) -> int:
        """Returns a digest of the first `batch_count` batches; each is digested only once."""
        for batch in self._batches[len(self._digests) - 1 : batch_count]:
            self._digests.append(digest_of_rows(batch, digest_of_rows([[len(batch)]], self._digests[-1])))
        return self._digests[batch_count]


def _taken(last: Any) -> int:
    """Returns how many batches were cut up to this metadata, None before the first."""
    return last[0] + 1 if last else 0


class _FixedBatchesEmitter(SpoutEmitter):
    def __init__(self, batches: Sequence[Sequence[Sequence[Any]]], context: TopologyContext) -> None:
        self._batches = batches
        self._context = context

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        collector.emit_all(self._batches[metadata[0]][self._context.task_index :: self._context.task_count])


class FeederSpout(BaseSpout):
    """Emits the tuples given to `feed`, in order, one per call; never replays by itself.

    Args:
        fields: the fields of its default stream.

    Source: backtype.storm.testing.FeederSpout.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._fed: deque[tuple[list[Any], Any]] = deque()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._fields)

    def feed(self, values: Sequence[Any], message_id: Any = None) -> None:
        """Queues values for the spout to emit when it is next asked for a tuple; call it where the live spout is."""
        self._fed.append((list(values), message_id))

    def next_tuple(self) -> None:
        if self._fed:
            values, message_id = self._fed.popleft()
            self.collector.emit(values, message_id)
