"""Everything a task needs to run bolts: tuples, streams, groupings, counting, the ack tree."""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from coordinated_bolt.acker import ACKER_COMPONENT, Acker, AckOutcome
from coordinated_bolt.basic_bolts import BaseBasicBolt, BasicOutputCollector, IBasicBolt
from coordinated_bolt.batch_acker import AttemptOutcome, BatchAcker, send_report
from coordinated_bolt.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.batch_task import BatchTask, Inbox, TaskResult
from coordinated_bolt.bolts import BaseBatchBolt, BatchOutputCollector, IBatchBolt
from coordinated_bolt.choosers import Chooser, stable_hash
from coordinated_bolt.collectors import AttemptCollector
from coordinated_bolt.components import IComponent
from coordinated_bolt.context import TopologyContext
from coordinated_bolt.coordinated_bolt import CoordinatedBolt, Finished
from coordinated_bolt.edges import DRIVER, EdgeDigest, batch_edge
from coordinated_bolt.failure import Failure, FailureKind
from coordinated_bolt.frames import Frame, FrameKind, frame_target, pack_frame, unpack_frame
from coordinated_bolt.groupings import (
    AllGrouping,
    CustomGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShippedGrouping,
    ShuffleGrouping,
)
from coordinated_bolt.outbox import Outbox, Send
from coordinated_bolt.rotating_map import RotatingMap, XorRotatingMap
from coordinated_bolt.routing import OutputStream, Router, Subscriber
from coordinated_bolt.streams import DEFAULT_STREAM, OutputFieldsDeclarer, StreamSpec
from coordinated_bolt.time_cache_map import TimeCacheMap
from coordinated_bolt.tracking import Tracking, TrackingStatus
from coordinated_bolt.tuples import Tuple, TupleOrigin
from coordinated_bolt.wiring import Source, TaskWiring

__all__ = [
    "ACKER_COMPONENT",
    "AckOutcome",
    "Acker",
    "AllGrouping",
    "AttemptCollector",
    "AttemptOutcome",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BasicOutputCollector",
    "BatchAcker",
    "BatchBoltExecutor",
    "BatchOutputCollector",
    "BatchTask",
    "Chooser",
    "CoordinatedBolt",
    "CustomGrouping",
    "DEFAULT_STREAM",
    "DRIVER",
    "DirectGrouping",
    "EdgeDigest",
    "Failure",
    "FailureKind",
    "FieldsGrouping",
    "Finished",
    "Frame",
    "FrameKind",
    "GlobalGrouping",
    "Grouping",
    "GroupingContext",
    "IBasicBolt",
    "IBatchBolt",
    "IComponent",
    "Inbox",
    "LocalOrShuffleGrouping",
    "NoneGrouping",
    "Outbox",
    "OutputFieldsDeclarer",
    "OutputStream",
    "PartialKeyGrouping",
    "RotatingMap",
    "Router",
    "Send",
    "ShippedGrouping",
    "ShuffleGrouping",
    "Source",
    "StreamSpec",
    "Subscriber",
    "TaskResult",
    "TaskWiring",
    "TimeCacheMap",
    "TopologyContext",
    "Tracking",
    "TrackingStatus",
    "Tuple",
    "TupleOrigin",
    "XorRotatingMap",
    "batch_edge",
    "frame_target",
    "pack_frame",
    "send_report",
    "stable_hash",
    "unpack_frame",
]
