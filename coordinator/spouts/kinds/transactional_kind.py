"""Transactional spouts: the coordinator cuts the whole batch, and nothing is cut while emitting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinated_bolt.batches.attempt_collector import AttemptCollector
from coordinated_bolt.components.context import TopologyContext
from coordinator.spouts.answers import expect_made
from coordinator.spouts.kinds.spout_kind import EmitOrder, SpoutKind, StoredPositions
from coordinator.spouts.transactional import SpoutCoordinator, SpoutEmitter


class TransactionalKind(SpoutKind):
    """Handles an `ITransactionalSpout`, whose coordinator a run uses as it is."""

    def coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> SpoutCoordinator:
        made = self._spec.get_coordinator(conf, context)
        coordinator: SpoutCoordinator = expect_made(SpoutCoordinator, "get_coordinator", made)
        return coordinator

    def emitter(self, context: TopologyContext, stored: StoredPositions) -> WholeBatches:
        made = self._spec.get_emitter(context.conf, context)
        return WholeBatches(expect_made(SpoutEmitter, "get_emitter", made))


class WholeBatches:
    """Runs the emitter of a transactional spout for one task.

    Args:
        emitter: the user's emitter.
    """

    def __init__(self, emitter: SpoutEmitter) -> None:
        self._emitter = emitter

    def emit(self, order: EmitOrder, metadata: Any, collector: AttemptCollector) -> dict[str, Any]:
        """Emits the task's share of the batch; there is no metadata to store."""
        self._emitter.emit_batch(order.known_as, metadata, collector)
        return {}

    def close(self) -> None:
        """Closes the user's emitter."""
        self._emitter.close()
