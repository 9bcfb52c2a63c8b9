"""Partitioned spouts: what emitters cut is stored before the commit phase, and read again exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_made, expect_truth
from coordinator.spouts.kinds.count_coordinator import CountCoordinator, LastPositions
from coordinator.spouts.kinds.partition_cut import PartitionCut, link_to
from coordinator.spouts.kinds.partition_scopes import partition_scope
from coordinator.spouts.kinds.spout_kind import EmitOrder, SpoutKind, StoredPositions, own_partitions
from coordinator.spouts.partitioned import PartitionedCoordinator, PartitionedEmitter
from state.codec import pack_exact
from state.keys import metadata_field
from state.metadata.rotating_transactional_state import RotatingTransactionalState
from state.metadata.transactional_state import TransactionalState
from state.values.own_copy import own_copy


class PartitionedKind(SpoutKind):
    """Handles an `IPartitionedTransactionalSpout`."""

    has_partitions = True

    def coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> PartitionCountCoordinator:
        made = self._spec.get_coordinator(conf, context)
        return PartitionCountCoordinator(expect_made(PartitionedCoordinator, "get_coordinator", made))

    def emitter(self, context: TopologyContext, stored: StoredPositions) -> PartitionBatches:
        made = self._spec.get_emitter(context.conf, context)
        return PartitionBatches(expect_made(PartitionedEmitter, "get_emitter", made), context, stored)


class PartitionCountCoordinator(CountCoordinator):
    """The coordinator of a partitioned spout, for which the number of transactions decides when the input ends.

    Args:
        coordinator: the user's coordinator.
    """

    def __init__(self, coordinator: PartitionedCoordinator) -> None:
        super().__init__(coordinator)
        self._coordinator = coordinator

    def follow(self, positions: LastPositions) -> None:
        super().follow(positions)
        self._coordinator.follow(self)

    def is_ready(self) -> bool:
        # `is_exhausted` has the number of transactions as an argument, so it works in a later run too
        return not self.is_exhausted(None) and expect_truth("is_ready", self._coordinator.is_ready())

    def is_exhausted(self, last: Any) -> bool:
        return expect_truth("is_exhausted", self._coordinator.is_exhausted(self._last_txid))

    def progress(self, last: Any) -> float | None:
        return self._coordinator.progress(self._last_txid)


class PartitionBatches:
    """Runs the emitter of a partitioned spout for one task over the attempts of a wave.

    Args:
        emitter: the user's emitter.
        context: of the task.
        stored: scope -> txid -> metadata of the partitions, as far as the driver knows it.
    """

    def __init__(self, emitter: PartitionedEmitter, context: TopologyContext, stored: StoredPositions) -> None:
        self._emitter = emitter
        self._context = context
        self._stored = stored
        self._states: dict[int, RotatingTransactionalState] = {}

    def emit(self, order: EmitOrder, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        """Emits the attempt's batch of each of the task's partitions.

        Returns:
            Scope -> what was cut, of the partitions that were newly cut and have to be stored.
        """
        attempt, known_as = order.attempt, order.known_as
        cuts: dict[str, PartitionCut] = {}
        for partition in own_partitions(self._context, metadata):
            state = self._state(partition)
            if state.has_cache(attempt.txid):
                stored = state.get_state(attempt.txid, _must_be_stored)
                if stored is not None:
                    self._emitter.emit_partition_batch(known_as, collector, partition, own_copy(stored))
                continue

            cuts[partition_scope(partition)] = self._cut_new(order, partition, collector)
        return cuts

    def close(self) -> None:
        """Closes the user's emitter."""
        self._emitter.close()

    def _cut_new(self, order: EmitOrder, partition: int, collector: AttemptCollector) -> PartitionCut:
        began_from = 0

        def cut(txid: int, last: Any) -> Any:
            nonlocal began_from
            began_from = link_to(last)
            return _checked(
                partition, self._emitter.emit_partition_batch_new(order.known_as, collector, partition, own_copy(last))
            )

        metadata = self._state(partition).get_state(order.attempt.txid, cut)
        return PartitionCut(began_from, metadata)

    def _state(self, partition: int) -> RotatingTransactionalState:
        if partition not in self._states:
            scope = partition_scope(partition)
            stored = {metadata_field(scope, txid): value for txid, value in self._stored.get(scope, {}).items()}
            # not strict: a partition may appear at any txid
            self._states[partition] = RotatingTransactionalState(TransactionalState(stored), scope, is_strict=False)
        return self._states[partition]


def _checked(partition: int, metadata: Any) -> Any:
    """Returns a copy of metadata; refuses here, where the partition is known, what cannot be stored exactly."""
    if metadata is None:
        raise TypeError(
            f"emit_partition_batch_new returned None for partition {partition}; return the position of its batch, even "
            "of an empty one: the next batch begins after it"
        )
    pack_exact(metadata)
    return own_copy(metadata)


def _must_be_stored(txid: int, last: Any) -> Any:
    raise AssertionError(f"metadata of txid {txid} was stored a moment ago")
