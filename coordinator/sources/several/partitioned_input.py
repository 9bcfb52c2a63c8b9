"""A partitioned source as one of several inputs: its partitions are cut on the driver, like the other sources.

On the driver, the source's emitter cuts the next batch of each partition, and its tuples are dropped; the tasks read
the same batch again. So the input is read twice, and the driver holds no more at a time than one transaction takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.streams.declared import DEFAULT_STREAM, OutputFieldsDeclarer
from coordinated_bolt.streams.records import EmittedRow
from coordinator.sources.several.shared_input import places_of
from coordinator.spouts.answers import expect_count, expect_positions
from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from state.attempt import TransactionAttempt

Positions = dict[int, tuple[int, Any]]
"""Partition -> (txid that its last batch was cut for, the metadata of that batch)."""


def as_whole(source: IPartitionedTransactionalSpout) -> PartitionedInput:
    """Returns a partitioned source in the form that `Inputs` cuts (driver)."""
    return CommittedPartitionedInput(source) if SpoutKind(source).has_committer else PartitionedInput(source)


class PartitionedInput(ITransactionalSpout):
    """A partitioned source whose partitions are cut together, on the driver."""

    def __init__(self, source: IPartitionedTransactionalSpout) -> None:
        self.source = source

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        self.source.declare_output_fields(declarer)

    def get_component_configuration(self) -> Mapping[str, Any]:
        return self.source.get_component_configuration()

    def find_input(self) -> None:
        self.source.find_input()

    def fingerprint(self) -> str:
        return self.source.fingerprint()

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        coordinator = SpoutKind(self.source).coordinator(conf, context)
        return PartitionedInputCoordinator(
            cast(PartitionedCoordinator, coordinator), self.source.get_emitter(conf, context)
        )

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutEmitter:
        return PartitionedInputEmitter(self.source.get_emitter(conf, context), context)

    def emitting_tasks(self, txid: int, metadata: Any, task_count: int) -> Collection[int]:
        return {partition % task_count for partition, _ in _cut_for(metadata, txid)}

    def describe(self, metadata: Positions) -> Sequence[str]:
        newest = max((number for number, _ in metadata.values()), default=0)
        return [line for each in _cut_for(metadata, newest) for line in self.source.describe(*each)]


class CommittedPartitionedInput(PartitionedInput, ICommitterTransactionalSpout):
    """A `PartitionedInput` whose source has a committer."""

    @property
    def destruction(self) -> str:  # type: ignore[override] # depends on the source
        """How the source destroys its input; empty if it does not."""
        return SpoutKind(self.source).destruction

    @property
    def input_places(self) -> tuple[str, ...]:
        """The places of the source's input; see `shared_input`."""
        return places_of(self.source)

    def get_committer(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCommitter:
        committer = SpoutKind(self.source).committer(conf, context)
        assert committer is not None, "it has one"
        return PartitionedInputCommitter(committer)


def _cut_for(metadata: Positions, number: int) -> list[tuple[int, Any]]:
    """Returns partition and metadata of every batch that a transaction reads."""
    return [(partition, cut) for partition, (cut_for, cut) in metadata.items() if cut_for == number]


def positions_in(metadata: Positions | None) -> dict[int, Any]:
    """Returns partition -> metadata of its last batch."""
    return {partition: cut for partition, (_, cut) in (metadata or {}).items()}


class PartitionedInputCoordinator(SpoutCoordinator):
    """Cuts a batch of every partition.

    Args:
        coordinator: coordinator of the source.
        emitter: emitter of the source, which cuts.
    """

    def __init__(self, coordinator: PartitionedCoordinator, emitter: PartitionedEmitter) -> None:
        self._coordinator, self._emitter = coordinator, emitter
        self._first: Mapping[int, Any] | None = None

    def compare(self, former: FormerInput) -> InputChange | None:
        positions = positions_in(former.last)
        count = len(positions) if former.last_txid else None
        return self._coordinator.compare(
            replace(former, positions=positions, last=count, pending=tuple(map(len, former.pending)))
        )

    def is_empty(self) -> bool:
        return self._informed().is_empty()

    def resume(self) -> None:
        self._informed().resume()

    def is_ready(self) -> bool:
        coordinator = self._informed()
        return not coordinator.is_exhausted() and coordinator.is_ready()

    def initialize_transaction(self, txid: int, previous: Any) -> Positions:
        coordinator = self._informed()
        if self._first is None:
            self._first = expect_positions(coordinator.first_positions())
        found: Positions = dict(previous or {})
        attempt = TransactionAttempt(txid, 0)
        for partition in range(expect_count(coordinator.number_of_partitions())):
            last = found[partition][1] if partition in found else self._first.get(partition)
            cut = self._emitter.emit_partition_batch_new(attempt, DroppingCollector(), partition, last)
            found[partition] = txid, cut
        return found

    def notes(self, metadata: Any) -> Mapping[str, Any]:
        return self._coordinator.notes(len(metadata))

    def is_exhausted(self) -> bool:
        return self._informed().is_exhausted()

    def is_finite(self) -> bool:
        return self._coordinator.is_finite()

    def progress(self) -> float | None:
        return self._informed().progress()

    def estimated_bytes(self, metadata: Any) -> int:
        return self._coordinator.estimated_bytes(len(metadata))

    def deactivate(self) -> None:
        self._informed().deactivate()

    def activate(self) -> None:
        self._informed().activate()

    def close(self) -> None:
        try:
            self._emitter.close()
        finally:
            self._coordinator.close()

    def _informed(self) -> PartitionedCoordinator:
        """Returns the source's coordinator with its own `run_so_far`, in which no batch is ahead of the positions."""
        so_far = self.run_so_far
        positions = positions_in(so_far.last)
        self._coordinator.run_so_far = RunSoFar(
            so_far.last_txid, len(positions), so_far.committed_txid, positions=positions, notes=so_far.notes
        )
        return self._coordinator


class PartitionedInputEmitter(SpoutEmitter):
    """Reads the batches of the task's partitions, which are k, k+n, k+2n and so on for task k of n."""

    def __init__(self, emitter: PartitionedEmitter, context: TopologyContext) -> None:
        self._emitter, self._context = emitter, context

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: BatchOutputCollector) -> None:
        for partition, cut in _cut_for(metadata, attempt.txid):
            if partition % self._context.task_count == self._context.task_index:
                self._emitter.emit_partition_batch(attempt, collector, partition, cut)

    def close(self) -> None:
        self._emitter.close()


class PartitionedInputCommitter(SpoutCommitter):
    """Calls the source's committer, for which a batch is partition -> metadata."""

    def __init__(self, committer: SpoutCommitter) -> None:
        self._committer = committer

    def commit(self, attempt: TransactionAttempt) -> None:
        self._committer.commit(attempt)

    def keep(self, batches: Collection[Any]) -> None:
        self._committer.keep([positions_in(metadata) for metadata in batches])

    def cleanup_before(self, txid: int) -> None:
        self._committer.cleanup_before(txid)

    def close(self) -> None:
        self._committer.close()


class DroppingCollector:
    """Drops the tuples that an emitter emits while it cuts: the tasks read them again."""

    def emit(self, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> list[int]:
        return []

    def emit_all(self, rows: Iterable[EmittedRow], stream_id: str = DEFAULT_STREAM) -> None:
        deque(rows, maxlen=0)  # consumed, since their generator may count them

    def emit_batch(self, batch: Any, stream_id: str = DEFAULT_STREAM) -> None:
        """Drops columns."""

    def emit_direct(self, task_id: int, values: EmittedRow, stream_id: str = DEFAULT_STREAM) -> None:
        """Drops one row."""

    def dead_letter(self, tup: Any, reason: str) -> None:
        """Drops a refused row."""
