"""Everything a task needs to run bolts: tuples, streams, groupings, counting, the ack tree."""

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from coordinated_bolt.acker import ACKER_COMPONENT, Acker, AckOutcome
from coordinated_bolt.acker_task import AckerTask
from coordinated_bolt.basic_bolt_executor import BasicBoltExecutor
from coordinated_bolt.basic_bolts import BaseBasicBolt, BasicOutputCollector, IBasicBolt
from coordinated_bolt.batch_acker import AttemptOutcome, BatchAcker, send_report
from coordinated_bolt.batch_bolt_executor import BatchBoltExecutor
from coordinated_bolt.batch_task import BatchTask, Inbox, TaskResult
from coordinated_bolt.bolt_task import BoltTask
from coordinated_bolt.bolts import BaseBatchBolt, BatchOutputCollector, IBatchBolt
from coordinated_bolt.callbacks import FinishedCallback, TimeoutCallback
from coordinated_bolt.choosers import Chooser, stable_hash
from coordinated_bolt.closing import close_all
from coordinated_bolt.collectors import AttemptCollector
from coordinated_bolt.components import IComponent
from coordinated_bolt.context import TopologyContext
from coordinated_bolt.coordinated_bolt import CoordinatedBolt, Finished
from coordinated_bolt.coordinated_task import CoordinatedTask, make_task
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
from coordinated_bolt.message_outbox import MessageOutbox, messages_of
from coordinated_bolt.messages import (
    Message,
    MessageKind,
    SendMessage,
    acker_of,
    coord_message,
    edges_message,
    regular_message,
    tick_message,
    tree_message,
    tuple_message,
)
from coordinated_bolt.metrics import ComponentMetrics, TaskMetrics, no_clock
from coordinated_bolt.metrics_observer import MetricsObserver
from coordinated_bolt.outbox import Outbox, Send
from coordinated_bolt.output_collector import AnchoringCollector, OutputCollector
from coordinated_bolt.pending_message import PendingMessage
from coordinated_bolt.plain_tuple import (
    SYSTEM_COMPONENT,
    TICK_STREAM,
    TICK_TUPLE_FREQ_SECS,
    PlainTuple,
    TupleStatus,
    is_tick,
)
from coordinated_bolt.rich_bolts import BaseRichBolt, IRichBolt
from coordinated_bolt.rotating_map import RotatingMap, XorRotatingMap
from coordinated_bolt.routing import OutputStream, Router, Subscriber
from coordinated_bolt.spout_output_collector import SpoutOutputCollector
from coordinated_bolt.spout_task import SpoutTask
from coordinated_bolt.spouts import BaseSpout, IAckValueSpout, IFailValueSpout, ISpout
from coordinated_bolt.streams import DEFAULT_STREAM, OutputFieldsDeclarer, StreamSpec
from coordinated_bolt.task_hook import AckInfo, EmitInfo, ExecuteInfo, FailInfo, ITaskHook
from coordinated_bolt.task_observer import TaskObserver
from coordinated_bolt.time_cache_map import TimeCacheMap
from coordinated_bolt.tracking import SourceArgs, Tracking, TrackingStatus
from coordinated_bolt.tuples import Tuple, TupleOrigin
from coordinated_bolt.user_code import is_interruption
from coordinated_bolt.user_traceback import user_traceback
from coordinated_bolt.wiring import Coordination, Source, TaskWiring

__all__ = [
    "ACKER_COMPONENT",
    "AckInfo",
    "AckOutcome",
    "Acker",
    "AckerTask",
    "AllGrouping",
    "AnchoringCollector",
    "AttemptCollector",
    "AttemptOutcome",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseRichBolt",
    "BaseSpout",
    "BasicBoltExecutor",
    "BasicOutputCollector",
    "BatchAcker",
    "BatchBoltExecutor",
    "BatchOutputCollector",
    "BatchTask",
    "BoltTask",
    "Chooser",
    "ComponentMetrics",
    "CoordinatedBolt",
    "CoordinatedTask",
    "Coordination",
    "CustomGrouping",
    "DEFAULT_STREAM",
    "DRIVER",
    "DirectGrouping",
    "EdgeDigest",
    "EmitInfo",
    "ExecuteInfo",
    "FailInfo",
    "Failure",
    "FailureKind",
    "FieldsGrouping",
    "Finished",
    "FinishedCallback",
    "Frame",
    "FrameKind",
    "GlobalGrouping",
    "Grouping",
    "GroupingContext",
    "IAckValueSpout",
    "IBasicBolt",
    "IBatchBolt",
    "IComponent",
    "IFailValueSpout",
    "IRichBolt",
    "ISpout",
    "ITaskHook",
    "Inbox",
    "LocalOrShuffleGrouping",
    "Message",
    "MessageKind",
    "MessageOutbox",
    "MetricsObserver",
    "NoneGrouping",
    "Outbox",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "OutputStream",
    "PartialKeyGrouping",
    "PendingMessage",
    "PlainTuple",
    "RotatingMap",
    "Router",
    "SYSTEM_COMPONENT",
    "Send",
    "SendMessage",
    "ShippedGrouping",
    "ShuffleGrouping",
    "Source",
    "SourceArgs",
    "SpoutOutputCollector",
    "SpoutTask",
    "StreamSpec",
    "Subscriber",
    "TICK_STREAM",
    "TICK_TUPLE_FREQ_SECS",
    "TaskMetrics",
    "TaskObserver",
    "TaskResult",
    "TaskWiring",
    "TimeCacheMap",
    "TimeoutCallback",
    "TopologyContext",
    "Tracking",
    "TrackingStatus",
    "Tuple",
    "TupleOrigin",
    "TupleStatus",
    "XorRotatingMap",
    "acker_of",
    "batch_edge",
    "close_all",
    "coord_message",
    "edges_message",
    "frame_target",
    "is_interruption",
    "is_tick",
    "make_task",
    "messages_of",
    "no_clock",
    "pack_frame",
    "regular_message",
    "send_report",
    "stable_hash",
    "tick_message",
    "tree_message",
    "tuple_message",
    "unpack_frame",
    "user_traceback",
]
