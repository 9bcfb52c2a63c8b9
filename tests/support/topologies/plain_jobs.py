"""Spouts and bolts that tell the test's process what became of every number, and runs of them in this process."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.plain_coordinator import PlainCoordinator
from coordinator.plain.plain_engine import PlainEngine
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_plan import PlainPlan, make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.watching.run_observer import Observer
from state.errors import FailedException


def planned(topology: PlainTopology) -> PlainPlan:
    return make_plain_plan(topology, lambda _, spec: pickle.dumps(spec))


def with_small_frames(plan: PlainPlan) -> PlainPlan:
    """Every message in a frame of its own, so that it can be lost alone."""
    wirings = {task: replace(wiring, frame_tuples=1) for task, wiring in plan.wirings.items()}
    return replace(plan, wirings=wirings)


class Clock:
    """Stands still but for what is slept, and what is added."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


def coordinator_of(
    plan: PlainPlan,
    engine: PlainEngine,
    *,
    clock: Clock | None = None,
    seed: int = 1,
    on_progress: Callable[[Any], None] | None = None,
    observers: Sequence[Observer] = (),
    **options: Any,
) -> PlainCoordinator:
    """A coordinator that ends when its spouts are idle."""
    clock = clock or Clock()
    return PlainCoordinator(
        plan,
        engine,
        PlainRunOptions(**{"stop_when_idle": True, **options}),
        clock=clock,
        sleep=clock.sleep,
        draw_bits=Random(seed).getrandbits,
        on_progress=on_progress,
        observers=observers,
    )


class Diary:
    """What happens, in order; instances of components are made by unpickling, so it is the class's."""

    events: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def note(cls, *what: Any) -> None:
        cls.events.append(what)

    @classmethod
    def take(cls) -> list[tuple[Any, ...]]:
        taken, cls.events[:] = list(cls.events), []
        return taken


class Told(BaseSpout):
    """Emits its share of some numbers with themselves as message ids, and again what fails.

    Args:
        numbers: what to emit.
        replays: whether failed ones are emitted again.
        per_call: how many a call emits.
    """

    output_fields = ("number",)

    def __init__(self, numbers, *, replays=True, per_call=1):
        self.numbers, self.replays, self.per_call = list(numbers), replays, per_call

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self.waiting = self.numbers[context.task_index :: context.task_count]
        Diary.note("open", context.task_index)

    def activate(self):
        Diary.note("activate", self.context.task_index)

    def deactivate(self):
        Diary.note("deactivate", self.context.task_index)

    def close(self):
        Diary.note("close", self.context.task_index)

    def next_tuple(self):
        for _ in range(min(self.per_call, len(self.waiting))):
            number = self.waiting.pop(0)
            Diary.note("emit", number)
            self.collector.emit([number], number)

    def ack(self, message_id):
        Diary.note("ack", message_id)

    def fail(self, message_id):
        Diary.note("fail", message_id)
        if self.replays:
            self.waiting.append(message_id)


class Raising(BaseBasicBolt):
    """Raises at one number."""

    output_fields = ("number",)

    def execute(self, tup, collector):
        if tup["number"] == 2:
            raise ValueError("cannot work with it")


class Summing(BaseRichBolt):
    """In its cleanup notes what it was given, and emits the sum of that, anchored on all of it."""

    output_fields = ("number",)

    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.held = []

    def execute(self, tup):
        self.held.append(tup)

    def cleanup(self):
        numbers = [tup["number"] for tup in self.held]
        Diary.note(self.context.component_id, numbers)
        self.collector.emit([sum(numbers)], self.held)
        for tup in self.held:
            self.collector.ack(tup)


class Scripted(BaseRichBolt):
    """Passes numbers on, but does with some of them once what the script says.

    Attributes:
        script: (component, number) -> what to do with its next tuples: "fail", "raise" or "leave".
        executed: (component, number) -> tuples executed and acked in the wave so far.
        struck: numbers that were failed or left in the wave so far.
    """

    output_fields = ("number",)
    script: ClassVar[dict[tuple[str, int], list[str]]] = {}
    executed: ClassVar[Counter[tuple[str, int]]] = Counter()
    struck: ClassVar[set[int]] = set()

    @classmethod
    def reset(cls, script: dict[tuple[str, int], list[str]] | None = None) -> None:
        cls.script = {key: list(actions) for key, actions in (script or {}).items()}
        cls.executed, cls.struck = Counter(), set()

    def execute(self, tup):
        number = tup["number"]
        key = (self.context.component_id, number)
        actions = Scripted.script.get(key)
        if not actions:
            Scripted.executed[key] += 1
            self.collector.emit([number], tup)
            self.collector.ack(tup)
            return
        action = actions.pop(0)
        Scripted.struck.add(number)
        if action == "raise":
            raise FailedException("as the script says")
        if action == "fail":
            self.collector.fail(tup)
