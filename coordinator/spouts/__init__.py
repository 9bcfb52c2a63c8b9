"""Spouts: where transactions come from."""

from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
from coordinator.spouts.count_coordinator import PartitionPositions
from coordinator.spouts.feeder import FeederSpout
from coordinator.spouts.input_change import FormerInput, InputChange
from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.spouts.opaque import (
    IOpaquePartitionedTransactionalSpout,
    OpaquePartitionedCoordinator,
    OpaquePartitionedEmitter,
)
from coordinator.spouts.partitioned import (
    IPartitionedTransactionalSpout,
    PartitionedCoordinator,
    PartitionedEmitter,
)
from coordinator.spouts.run_so_far import RunSoFar
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter

__all__ = [
    "FeederSpout",
    "FixedBatchesSpout",
    "FormerInput",
    "ICommitterTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "InputChange",
    "MemoryTransactionalSpout",
    "OpaqueMemoryTransactionalSpout",
    "OpaquePartitionedCoordinator",
    "OpaquePartitionedEmitter",
    "PartitionPositions",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "RunSoFar",
    "SpoutCommitter",
    "SpoutCoordinator",
    "SpoutEmitter",
]
