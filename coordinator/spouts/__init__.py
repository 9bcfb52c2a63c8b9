"""Spouts: where transactions come from."""

from coordinator.spouts.feeder import FeederSpout
from coordinator.spouts.partitioned import (
    IPartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
)
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter

__all__ = [
    "FeederSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "SpoutCoordinator",
    "SpoutEmitter",
]
