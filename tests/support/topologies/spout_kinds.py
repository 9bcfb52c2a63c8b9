"""A spout of each kind around the coordinator and the emitter of a test, which are what it is about."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout, PartitionedCoordinator, PartitionedEmitter
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter


class WholeSpout(ITransactionalSpout):
    """Batches cut by the coordinator."""

    output_fields = ("line", "number")

    def __init__(self, coordinator: Callable[[], SpoutCoordinator], emitter: Callable[[], SpoutEmitter]) -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def get_coordinator(self, conf, context):
        return self.coordinator()

    def get_emitter(self, conf, context):
        return self.emitter()


class PartitionedSpout(IPartitionedTransactionalSpout):
    """Batches cut partition by partition, and read again as they were cut."""

    output_fields = ("line", "number")

    def __init__(
        self, coordinator: Callable[[], PartitionedCoordinator], emitter: Callable[[], PartitionedEmitter]
    ) -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def get_coordinator(self, conf, context):
        return self.coordinator()

    def get_emitter(self, conf, context):
        return self.emitter()


class OpaqueSpout(IOpaquePartitionedTransactionalSpout):
    """Batches cut partition by partition, and cut again by each attempt."""

    output_fields = ("line", "number")

    def __init__(
        self, coordinator: Callable[[], PartitionedCoordinator], emitter: Callable[[], OpaquePartitionedEmitter]
    ) -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def get_coordinator(self, conf, context):
        return self.coordinator()

    def get_emitter(self, conf, context):
        return self.emitter()
