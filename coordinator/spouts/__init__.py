"""Spouts: where transactions come from."""

from coordinator.spouts.partitioned import (
    IPartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
)
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter

__all__ = [
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "SpoutCoordinator",
    "SpoutEmitter",
]
