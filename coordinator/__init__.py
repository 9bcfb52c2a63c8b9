"""Building and running topologies: spouts, the coordinator, the engines, the command line."""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from coordinator.component_configuration import SpoutDeclarer
from coordinator.coordinator import Coordinator
from coordinator.local import (
    AttemptEnd,
    AttemptRecord,
    BoltTrial,
    HeldPhase,
    LocalCluster,
    PlainRun,
    TransactionalRun,
    run_bolt,
)
from coordinator.options import RunOptions
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.coordinator import PlainCoordinator
from coordinator.plain.options import PlainRunOptions
from coordinator.plain.run import run_plain
from coordinator.plain.run_summary import PlainStatistics
from coordinator.plain.topology import PlainTopology
from coordinator.plain.topology_builder import TopologyBuilder
from coordinator.run import run
from coordinator.run_summary import RunStatistics
from coordinator.sources import TextFiles
from coordinator.spouts import (
    FeederSpout,
    FixedBatchesSpout,
    FormerInput,
    ICommitterTransactionalSpout,
    InputChange,
    IOpaquePartitionedTransactionalSpout,
    IPartitionedTransactionalSpout,
    ITransactionalSpout,
    MemoryTransactionalSpout,
    OpaqueMemoryTransactionalSpout,
    OpaquePartitionedCoordinator,
    OpaquePartitionedEmitter,
    PartitionedCoordinator,
    PartitionedEmitter,
    PartitionPositions,
    RunSoFar,
    SpoutCommitter,
    SpoutCoordinator,
    SpoutEmitter,
)
from coordinator.topology import Topology
from coordinator.topology_builder import BoltDeclarer, TransactionalTopologyBuilder

__all__ = [
    "AttemptEnd",
    "AttemptRecord",
    "BatchSubtopologyBuilder",
    "BoltDeclarer",
    "BoltTrial",
    "Coordinator",
    "FeederSpout",
    "FixedBatchesSpout",
    "FormerInput",
    "HeldPhase",
    "ICommitterTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "InputChange",
    "LocalCluster",
    "MemoryTransactionalSpout",
    "OpaqueMemoryTransactionalSpout",
    "OpaquePartitionedCoordinator",
    "OpaquePartitionedEmitter",
    "PartitionPositions",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PlainCoordinator",
    "PlainRun",
    "PlainRunOptions",
    "PlainStatistics",
    "PlainTopology",
    "RunOptions",
    "RunSoFar",
    "RunStatistics",
    "SpoutCommitter",
    "SpoutCoordinator",
    "SpoutDeclarer",
    "SpoutEmitter",
    "TextFiles",
    "Topology",
    "TopologyBuilder",
    "TransactionalRun",
    "TransactionalTopologyBuilder",
    "run",
    "run_bolt",
    "run_plain",
]
