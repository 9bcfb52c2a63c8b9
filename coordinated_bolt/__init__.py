"""Everything that a task needs to run bolts: tuples, streams, groupings, counting and the ack tree.

Pure: an engine delivers frames and messages, and passes in clocks and seeds. No Spark, no Redis, no sources here.
Shared modules are at the top: `wiring` (all that one task knows), `columns` (rows, held as columns), `user_code`,
`user_traceback` and `user_failure` (exceptions of user code), `neighbours` (the import check), `rotating_map` and
`time_cache_map` (timeouts).
"""

from typing import TYPE_CHECKING

from coordinated_bolt.neighbours import require_own_packages

require_own_packages()

from state.lazy_exports import hand_on_lazily

if TYPE_CHECKING:
    from coordinated_bolt.components.basic_bolts import BaseBasicBolt, BasicOutputCollector, IBasicBolt
    from coordinated_bolt.components.batch_bolts import BaseBatchBolt, FinishedCallback, IBatchBolt, TimeoutCallback
    from coordinated_bolt.components.batch_output_collector import BatchOutputCollector
    from coordinated_bolt.components.component import IComponent
    from coordinated_bolt.components.context import TopologyContext
    from coordinated_bolt.components.function_bolt import bolt
    from coordinated_bolt.components.rich_bolts import BaseRichBolt, IRichBolt, OutputCollector
    from coordinated_bolt.components.spouts import (
        BaseSpout,
        IAckValueSpout,
        IFailValueSpout,
        ISpout,
        SpoutOutputCollector,
    )
    from coordinated_bolt.components.task_hook import AckInfo, EmitInfo, ExecuteInfo, FailInfo, ITaskHook
    from coordinated_bolt.rotating_map import RotatingMap
    from coordinated_bolt.streams.declared import OutputFieldsDeclarer
    from coordinated_bolt.streams.groupings import CustomGrouping
    from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS, is_tick
    from coordinated_bolt.streams.tuple_batch import TupleBatch
    from coordinated_bolt.streams.tuples import Tuple
    from coordinated_bolt.time_cache_map import TimeCacheMap

hand_on_lazily(__name__)

__all__ = [
    "AckInfo",
    "BaseBasicBolt",
    "BaseBatchBolt",
    "BaseRichBolt",
    "BaseSpout",
    "BasicOutputCollector",
    "BatchOutputCollector",
    "CustomGrouping",
    "EmitInfo",
    "ExecuteInfo",
    "FailInfo",
    "FinishedCallback",
    "IAckValueSpout",
    "IBasicBolt",
    "IBatchBolt",
    "IComponent",
    "IFailValueSpout",
    "IRichBolt",
    "ISpout",
    "ITaskHook",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "RotatingMap",
    "SpoutOutputCollector",
    "TICK_TUPLE_FREQ_SECS",
    "TimeCacheMap",
    "TimeoutCallback",
    "TopologyContext",
    "Tuple",
    "TupleBatch",
    "bolt",
    "is_tick",
]
