"""A spout of each kind around the coordinator and the emitter of a test, which are what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout
from coordinator.spouts.partitioned import IPartitionedTransactionalSpout
from coordinator.spouts.transactional import ITransactionalSpout


class _Given:
    """Mixed into a kind of spout.

    Args:
        coordinator: makes one, of the kind's class.
        emitter: likewise.
    """

    output_fields: ClassVar[Sequence[str] | type[Any]] = ("line", "number")

    def __init__(self, coordinator: Callable[[], Any], emitter: Callable[[], Any]) -> None:
        self.coordinator, self.emitter = coordinator, emitter

    def get_coordinator(self, conf, context):
        return self.coordinator()

    def get_emitter(self, conf, context):
        return self.emitter()


class WholeSpout(_Given, ITransactionalSpout):
    """Batches cut by the coordinator."""


class PartitionedSpout(_Given, IPartitionedTransactionalSpout):
    """Batches cut partition by partition, and read again as they were cut."""


class OpaqueSpout(_Given, IOpaquePartitionedTransactionalSpout):
    """Batches cut partition by partition, and cut again by each attempt."""
