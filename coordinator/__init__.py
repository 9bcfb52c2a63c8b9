"""Everything that builds and runs topologies: spouts, the coordinator, the engines, the command line.

The modules directly in this package are entrances: `run` and `run_plain` to Spark, `start` to a run in the background,
and `exactly_once` from Structured Streaming. One `RunRequest` (`run_request`) describes a transactional run, and one
`ServerChoice` (`server_choice`) its server; the packages below do the work.
"""

from typing import TYPE_CHECKING

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from coordinator.exactly_once import ExactlyOnce, exactly_once
    from coordinator.fluent.stream import Stream, stream
    from coordinator.operating.topology_plan import TopologyPlan, plan
    from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
    from coordinator.plain.plain_options import PlainRunOptions
    from coordinator.plain.plain_statistics import PlainStatistics
    from coordinator.plain.plain_topology import PlainTopology
    from coordinator.plain.plain_topology_builder import TopologyBuilder
    from coordinator.proving.mistakes import FoundMistake, Mistake, Proof
    from coordinator.proving.prove import prove
    from coordinator.run import run
    from coordinator.run_plain import run_plain
    from coordinator.sources.data_frame_batches import DataFrameBatches
    from coordinator.sources.files.csv_files import CsvFiles
    from coordinator.sources.files.follow import Follow
    from coordinator.sources.files.line_files import JsonLines, TextFiles
    from coordinator.sources.files.parquet_files import ParquetFiles
    from coordinator.sources.kafka.kafka_topic import KafkaTopic
    from coordinator.sources.kafka.transactional_spout import KafkaTransactionalSpout
    from coordinator.sources.redis_streams.redis_streams import RedisStreams
    from coordinator.sources.several.inputs import Inputs, first
    from coordinator.spouts.committing import ICommitterTransactionalSpout, SpoutCommitter
    from coordinator.spouts.memory import (
        FeederSpout,
        FixedBatchesSpout,
        MemoryTransactionalSpout,
        OpaqueMemoryTransactionalSpout,
    )
    from coordinator.spouts.opaque import IOpaquePartitionedTransactionalSpout, OpaquePartitionedEmitter
    from coordinator.spouts.partitioned import (
        IPartitionedTransactionalSpout,
        PartitionedCoordinator,
        PartitionedEmitter,
    )
    from coordinator.spouts.run_so_far import FormerInput, InputChange, RunSoFar
    from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter, SpoutSpec
    from coordinator.start import BackgroundRun, RunStatus, start
    from coordinator.testing.cluster.attempt_book import AttemptRecord, HeldPhase
    from coordinator.testing.cluster.cluster import LocalCluster
    from coordinator.testing.cluster.plain_run import PlainRun
    from coordinator.testing.cluster.transactional_run import TransactionalRun
    from coordinator.topology.building.topology import Topology
    from coordinator.topology.building.topology_builder import BoltDeclarer, TransactionalTopologyBuilder
    from coordinator.transactional.options import RunOptions
    from coordinator.trying.bolt_trial import BoltTrial, run_bolt
    from coordinator.watching.statistics.run_report import RunReport
    from coordinator.watching.statistics.run_statistics import RunStatistics
    from state.errors import TransactionError
    from state.kinds.hash_state import HashState
    from state.kinds.member_states import HyperLogLogState, SetState, SortedSetState
    from state.kinds.stream_state import StreamState
    from state.kinds.value_states import ListState, ValueState
    from state.redis_admin.snapshots import snapshot

hand_on_lazily(__name__)

__all__ = [
    "AttemptRecord",
    "BackgroundRun",
    "BatchSubtopologyBuilder",
    "BoltDeclarer",
    "BoltTrial",
    "CsvFiles",
    "DataFrameBatches",
    "ExactlyOnce",
    "FeederSpout",
    "FixedBatchesSpout",
    "Follow",
    "FormerInput",
    "FoundMistake",
    "HashState",
    "HeldPhase",
    "HyperLogLogState",
    "ICommitterTransactionalSpout",
    "IOpaquePartitionedTransactionalSpout",
    "IPartitionedTransactionalSpout",
    "ITransactionalSpout",
    "InputChange",
    "Inputs",
    "JsonLines",
    "KafkaTopic",
    "KafkaTransactionalSpout",
    "ListState",
    "LocalCluster",
    "MemoryTransactionalSpout",
    "Mistake",
    "OpaqueMemoryTransactionalSpout",
    "OpaquePartitionedEmitter",
    "ParquetFiles",
    "PartitionedCoordinator",
    "PartitionedEmitter",
    "PlainRun",
    "PlainRunOptions",
    "PlainStatistics",
    "PlainTopology",
    "Proof",
    "RedisStreams",
    "RunOptions",
    "RunReport",
    "RunSoFar",
    "RunStatistics",
    "RunStatus",
    "SetState",
    "SortedSetState",
    "SpoutCommitter",
    "SpoutCoordinator",
    "SpoutEmitter",
    "SpoutSpec",
    "Stream",
    "StreamState",
    "TextFiles",
    "Topology",
    "TopologyBuilder",
    "TopologyPlan",
    "TransactionError",
    "TransactionalRun",
    "TransactionalTopologyBuilder",
    "ValueState",
    "exactly_once",
    "first",
    "plan",
    "prove",
    "run",
    "run_bolt",
    "run_plain",
    "snapshot",
    "start",
    "stream",
]
