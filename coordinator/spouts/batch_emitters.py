"""Runs a user's emitter over the attempts of a wave; one class for each kind of spout (executor)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.context import TopologyContext
from coordinated_bolt.user_traceback import call
from coordinator.spouts.batch import Batch
from coordinator.spouts.partition_cut import PartitionCut, link_to, partition_scope
from state.attempt import TransactionAttempt
from state.codec import pack_exact
from state.keys import metadata_field
from state.metadata import RotatingTransactionalState, TransactionalState
from state.values.own_copy import own_copy

StoredPositions = Mapping[str, Mapping[int, Any]]
"""Scope -> txid -> metadata of the partitions, known to the driver at the start of the wave."""


def numbered(batch: Batch) -> TransactionAttempt:
    """Returns the attempt for user code, with the spout's own number of the batch."""
    return batch.attempt if batch.number is None else TransactionAttempt(batch.number, batch.attempt.attempt_id)


class BatchEmitter(ABC):
    """A user's emitter, run for one task (one per task and wave).

    Args:
        emitter: the user's object.
        context: the task's context.
        stored: the positions of transactions below the wave.
    """

    def __init__(self, emitter: Any, context: TopologyContext, stored: StoredPositions) -> None:
        self._emitter = emitter
        self._context = context
        self._stored = stored

    @abstractmethod
    def emit(self, batch: Batch, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        """Emits this task's share of the batch; called once per attempt, in txid order.

        Returns:
            Scope -> the partition's part that was cut while emitting and has to be stored.
        """

    def close(self) -> None:
        """Closes the user's emitter."""
        self._emitter.close()

    def _own_partitions(self, count: Any) -> range:
        """Returns the partitions that the task reads: k, k+n, k+2n, … for task k of n."""
        return range(self._context.task_index, int(count), self._context.task_count)


class WholeBatches(BatchEmitter):
    """For a transactional spout: the coordinator has cut the whole batch."""

    def emit(self, batch: Batch, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        call(self._emitter.emit_batch, numbered(batch), metadata, collector)
        return {}


class PartitionBatches(BatchEmitter):
    """For a partitioned spout: its metadata is stored before the commit phase, and a replay reads exactly the same."""

    def __init__(self, emitter: Any, context: TopologyContext, stored: StoredPositions) -> None:
        super().__init__(emitter, context, stored)
        self._states: dict[int, RotatingTransactionalState] = {}

    def emit(self, batch: Batch, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        txid = batch.attempt.txid
        cuts: dict[str, PartitionCut] = {}
        for partition in self._own_partitions(metadata):
            state = self._state(partition)
            if state.has_cache(txid):
                stored = state.get_state(txid, _must_be_stored)
                if stored is not None:
                    # its return value (the position, if it shares code with `emit_partition_batch_new`) is not needed
                    self._emitter.emit_partition_batch(numbered(batch), collector, partition, own_copy(stored))
                continue
            cuts[partition_scope(partition)] = self._cut_new(batch, partition, collector)
        return cuts

    def _cut_new(self, batch: Batch, partition: int, collector: AttemptCollector) -> PartitionCut:
        began_from = 0

        def cut(txid: int, last: Any) -> Any:
            nonlocal began_from
            began_from = link_to(last)
            metadata = self._emitter.emit_partition_batch_new(numbered(batch), collector, partition, own_copy(last))
            if metadata is None:
                raise TypeError(
                    f"emit_partition_batch_new returned None for partition {partition}; return the position of its "
                    "batch, even of an empty one: the next batch begins after it"
                )
            pack_exact(metadata)  # refused here, where the partition is known
            return own_copy(metadata)

        metadata = self._state(partition).get_state(batch.attempt.txid, cut)
        return PartitionCut(began_from, metadata)

    def _state(self, partition: int) -> RotatingTransactionalState:
        if partition not in self._states:
            scope = partition_scope(partition)
            stored = {metadata_field(scope, txid): value for txid, value in self._stored.get(scope, {}).items()}
            # not strict: a partition may appear at any txid
            self._states[partition] = RotatingTransactionalState(TransactionalState(stored), scope, is_strict=False)
        return self._states[partition]


def _must_be_stored(txid: int, last: Any) -> Any:
    raise AssertionError(f"metadata of txid {txid} was stored a moment ago")


class OpaqueBatches(BatchEmitter):
    """For an opaque spout: each attempt is cut again, and the commit stores the resulting positions."""

    def __init__(self, emitter: Any, context: TopologyContext, stored: StoredPositions) -> None:
        super().__init__(emitter, context, stored)
        self._positions = {scope: dict(by_txid) for scope, by_txid in stored.items()}

    def emit(self, batch: Batch, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        attempt = batch.attempt
        cuts: dict[str, PartitionCut] = {}
        for partition in self._own_partitions(metadata):
            scope = partition_scope(partition)
            if batch.scopes is not None and scope not in batch.scopes:
                continue
            by_txid = self._positions.setdefault(scope, {})
            below = max((txid for txid in by_txid if txid < attempt.txid), default=None)
            last = None if below is None else own_copy(by_txid[below])
            began_from = link_to(last)  # before user code gets it and may change it
            emitted_before = collector.emitted_count
            position = self._emitter.emit_partition_batch(numbered(batch), collector, partition, last)
            if position is not None:
                pack_exact(position)
                by_txid[attempt.txid] = own_copy(position)
                cuts[scope] = PartitionCut(began_from, by_txid[attempt.txid])
            elif collector.emitted_count > emitted_before:
                raise TypeError(
                    f"emit_partition_batch returned None for partition {partition} although it emitted "
                    f"{collector.emitted_count - emitted_before} tuples; return the position after them, "
                    "or they would be emitted again"
                )
        self._emitter.finish_batch(numbered(batch))
        return cuts
