"""Spouts and bolts of plain topologies on Spark: spouts note in the driver's process, bolts in files."""

from __future__ import annotations

from typing import Any, ClassVar

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.run_plain import run_plain
from tests.support.spark.bolts import note


def run(context: Any, topology: Any, **more: Any) -> Any:
    """Runs a plain topology until its spouts are idle; names of `PlainRunOptions` go there."""
    known = PlainRunOptions.__dataclass_fields__
    options = {name: more.pop(name) for name in list(more) if name in known}
    return run_plain(
        topology,
        spark=context,
        options=PlainRunOptions(**{"stop_when_idle": True, "idle_rounds": 2, **options}),
        **more,
    )


class Feed(BaseSpout):
    """Emits lists of values with their positions as message ids, and again what fails if it is to.

    Attributes:
        told: ("ack" or "fail", position) of all instances, in order.
    """

    told: ClassVar[list[tuple[str, int]]] = []
    output_fields = ("value",)

    def __init__(self, values, *, replays=True):
        self.values, self.replays = list(values), replays

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.waiting = list(range(context.task_index, len(self.values), context.task_count))

    def next_tuple(self):
        if self.waiting:
            position = self.waiting.pop(0)
            self.collector.emit([self.values[position]], position)

    def ack(self, message_id):
        Feed.told.append(("ack", message_id))

    def fail(self, message_id):
        Feed.told.append(("fail", message_id))
        if self.replays:
            self.waiting.append(message_id)


class Seen(BaseBasicBolt):
    """Notes what it is given: [component, task index, value]; then passes it on."""

    output_fields = ("value",)

    def __init__(self, path):
        self.path = str(path)

    def execute(self, tup, collector):
        note(self.path, self.context.component_id, self.context.task_index, tup[0])
        collector.emit([tup[0]])


class Join(BaseRichBolt):
    """Emits a pair when both sides of a value are there, anchored on both; acks them then."""

    output_fields = ("value",)

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.held = {}

    def execute(self, tup):
        other = self.held.pop(tup["value"], None)
        if other is None:
            self.held[tup["value"]] = tup
            return
        self.collector.emit([tup["value"]], [tup, other])
        self.collector.ack(tup)
        self.collector.ack(other)


def builder_of(values, *, replays=True, tasks=1, ackers=1, pending=1000):
    """A builder with the spout "feed"."""
    builder = TopologyBuilder("plain")
    builder.set_spout("feed", Feed(values, replays=replays), tasks)
    builder.set_acker_count(ackers)
    builder.set_max_spout_pending(pending)
    return builder
