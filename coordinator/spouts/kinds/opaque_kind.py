"""Opaque spouts: each attempt is cut again, and the positions it leaves are stored by the commit itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_made, expect_truth
from coordinator.spouts.kinds.count_coordinator import CountCoordinator
from coordinator.spouts.kinds.partition_cut import PartitionCut, link_to
from coordinator.spouts.kinds.partition_scopes import partition_scope
from coordinator.spouts.kinds.spout_kind import EmitOrder, SpoutKind, StoredPositions, own_partitions
from coordinator.spouts.opaque import OpaquePartitionedCoordinator, OpaquePartitionedEmitter
from state.codec import pack_exact
from state.values.own_copy import own_copy


class OpaqueKind(SpoutKind):
    """Handles an `IOpaquePartitionedTransactionalSpout`."""

    is_opaque = True
    has_partitions = True

    def coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> OpaqueCountCoordinator:
        made = self._spec.get_coordinator(conf, context)
        return OpaqueCountCoordinator(expect_made(OpaquePartitionedCoordinator, "get_coordinator", made))

    def emitter(self, context: TopologyContext, stored: StoredPositions) -> OpaqueBatches:
        made = self._spec.get_emitter(context.conf, context)
        return OpaqueBatches(expect_made(OpaquePartitionedEmitter, "get_emitter", made), context, stored)


class OpaqueCountCoordinator(CountCoordinator):
    """The coordinator of an opaque spout, for which the positions of partitions decide when the input ends.

    Args:
        coordinator: the user's coordinator.
    """

    def __init__(self, coordinator: OpaquePartitionedCoordinator) -> None:
        super().__init__(coordinator)
        self._coordinator = coordinator

    def is_ready(self) -> bool:
        # an input that has ended gets no new transaction, however often a run is started
        return not self.is_exhausted(None) and expect_truth("is_ready", self._coordinator.is_ready())

    def is_exhausted(self, last: Any) -> bool:
        return expect_truth("is_exhausted", self._coordinator.is_exhausted(self.by_partition(), self.pending()))

    def progress(self, last: Any) -> float | None:
        return self._coordinator.progress(self.by_partition())


class OpaqueBatches:
    """Runs an opaque emitter for one task over the attempts of a wave.

    Args:
        emitter: the user's emitter.
        context: of the task.
        stored: scope -> txid -> position, of transactions below the wave.
    """

    def __init__(self, emitter: OpaquePartitionedEmitter, context: TopologyContext, stored: StoredPositions) -> None:
        self._emitter = emitter
        self._context = context
        self._positions = {scope: dict(by_txid) for scope, by_txid in stored.items()}

    def emit(self, order: EmitOrder, metadata: Any, collector: AttemptCollector) -> dict[str, PartitionCut]:
        """Emits the attempt's batch of each of the task's partitions.

        Returns:
            Scope -> what was cut, of the partitions that have a position now.
        """
        attempt = order.attempt
        cuts: dict[str, PartitionCut] = {}
        for partition in own_partitions(self._context, metadata):
            scope = partition_scope(partition)
            if order.scopes is not None and scope not in order.scopes:
                continue
            by_txid = self._positions.setdefault(scope, {})
            below = max((txid for txid in by_txid if txid < attempt.txid), default=None)
            last = None if below is None else own_copy(by_txid[below])
            began_from = link_to(last)  # before user code has it, which may change it
            emitted_before = collector.emitted_count
            position = self._emitter.emit_partition_batch(order.known_as, collector, partition, last)
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
        return cuts

    def close(self) -> None:
        """Closes the user's emitter."""
        self._emitter.close()
