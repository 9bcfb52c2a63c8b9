"""Small spouts and bolts of plain topologies, and a way to run them."""

from __future__ import annotations

import pickle
from collections import Counter
from random import Random
from typing import Any, ClassVar

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinated_bolt.streams.plain_tuple import is_tick
from coordinated_bolt.streams.tuples import Tuple
from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.testing.cluster.plain_run import PlainRun
from state.errors import FailedException


def start(builder: TopologyBuilder, conf: dict[str, Any] | None = None, **options: Any) -> PlainRun:
    """An active run of what was built."""
    plan = make_plain_plan(builder.build(conf), lambda _, spec: pickle.dumps(spec), is_chained=False)
    run = PlainRun(plan, **options)
    run.activate()
    return run


def fed_builder(fields: tuple[str, ...] = ("value",), parallelism: int | None = 1) -> TopologyBuilder:
    builder = TopologyBuilder("test")
    builder.set_spout("spout", FeederSpout(fields), parallelism)
    return builder


class Identity(BaseBasicBolt):
    """Passes every tuple on."""

    output_fields = ("value",)

    def execute(self, tup, collector):
        collector.emit(tup.values)


class Sink(BaseBasicBolt):
    """Takes every tuple and emits nothing."""

    def execute(self, tup, collector):
        pass


class AnchorAll(BaseRichBolt):
    """Keeps tuples until there are `count`, then emits one anchored on all of them and acks them."""

    output_fields = ("value",)

    def __init__(self, count: int) -> None:
        self.count = count
        self.held: list[Tuple] = []

    def execute(self, tup):
        self.held.append(tup)
        if len(self.held) == self.count:
            self.collector.emit([len(self.held)], self.held)
            for held in self.held:
                self.collector.ack(held)
            self.held = []


class AnchorTwice(BaseRichBolt):
    """Anchors twice on its input."""

    output_fields = ("value",)

    def execute(self, tup):
        self.collector.emit(tup.values, [tup, tup])
        self.collector.ack(tup)


class Numbers(BaseSpout):
    """Emits 0..count-1 with the numbers as message ids, and again whatever fails.

    Attributes:
        acked: by number, of all instances.
        failed: likewise.
    """

    output_fields = ("value",)
    acked: ClassVar[Counter[int]] = Counter()
    failed: ClassVar[Counter[int]] = Counter()

    def __init__(self, count: int, *, replays: bool = True, tracked: bool = True) -> None:
        self.waiting, self.replays, self.tracked = list(range(count)), replays, tracked

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.waiting = self.waiting[context.task_index :: context.task_count]

    def next_tuple(self):
        if self.waiting:
            number = self.waiting.pop(0)
            self.collector.emit([[number]], number if self.tracked else None)

    def ack(self, message_id):
        Numbers.acked[message_id] += 1

    def fail(self, message_id):
        Numbers.failed[message_id] += 1
        if self.replays:
            self.waiting.append(message_id)


class Shaky(BaseRichBolt):
    """Holds, joins, anchors and fails at random, and with the next tick acks what it has not failed.

    Values are lists of the numbers whose trees the tuple belongs to, so the test knows who was hit.

    Attributes:
        struck: numbers of failed tuples, of all instances.
    """

    output_fields = ("numbers",)
    struck: ClassVar[Counter[int]] = Counter()

    def __init__(self, seed: int, failures: int) -> None:
        self.seed, self.failures = seed, failures
        self.held: list[Tuple] = []

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.random = Random(f"{self.seed} {context.task_id}")
        self.emissions = 8  # so that a graph of many paths ends

    def execute(self, tup):
        if is_tick(tup):
            self.collector.ack(tup)
            self.release(len(self.held))
        elif self.failures and self.random.random() < 0.3:
            self.failures -= 1
            Shaky.struck.update(tup[0])
            if self.random.random() < 0.5:
                raise FailedException("as it happens")
            self.collector.fail(tup)
        else:
            self.held.append(tup)
            self.release(self.random.randrange(len(self.held) + 1))

    def release(self, count):
        for _ in range(min(self.emissions, self.random.randrange(3))):
            self.emissions -= 1
            anchors = self.random.choices(self.held, k=self.random.randrange(4)) if self.held else []
            self.collector.emit([sorted({number for tup in anchors for number in tup[0]})], anchors)
        self.random.shuffle(self.held)
        done, self.held = self.held[:count], self.held[count:]
        for tup in done:
            self.collector.ack(tup)


class Unsteady(BaseRichBolt):
    """Passes tuples on; some it fails and some it forgets, the less the more it has seen.

    Attributes:
        seen: values that were passed on, of all instances.
    """

    output_fields = ("value",)
    seen: ClassVar[Counter[int]] = Counter()

    def __init__(self, seed: int, faults: int) -> None:
        self.seed, self.faults = seed, faults

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.random = Random(f"{self.seed} {context.task_id}")

    def execute(self, tup):
        fault = self.random.choice(["none", "fail", "raise", "forget", "emit and forget"]) if self.faults else "none"
        self.faults -= fault != "none"
        if fault in {"none", "emit and forget"}:
            Unsteady.seen.update(tup[0])
            self.collector.emit(tup.values, tup)
        if fault == "none":
            self.collector.ack(tup)
        elif fault == "fail":
            self.collector.fail(tup)
        elif fault == "raise":
            raise FailedException("once")
