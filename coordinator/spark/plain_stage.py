"""What runs on executors for a plain topology: bolts of one level of a wave, and its ackers.

As in `stage`, a stage collects its frames and puts them in order before it executes any, and whatever it
draws at random is seeded by wave and task: computed again, it does the same again. A bolt's memory lasts one
wave, since its task does.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import TYPE_CHECKING

from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.subtopology.coordinated_task import CoordinatedTask, make_task
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import Frame, FrameKind, unpack_frame
from coordinated_bolt.transport.message_packer import MessagePacker, messages_of
from coordinated_bolt.transport.messages import Message, MessageKind
from coordinated_bolt.trees.acker_task import AckerTask
from coordinated_bolt.trees.bolt_task import BoltTask
from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinated_bolt.watching.metrics_observer import MetricsObserver
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.engine import WaveDrained
from coordinator.planning.wave_plan import WavePlan
from coordinator.spark.alarm import Deadline, alarm_for
from coordinator.spark.frame_flow import Addressed, FrameFault, Post, disturbed, sort_out
from coordinator.spark.worker import settle_worker
from state.attempt import TransactionAttempt
from state.codec import CodecError, digest64, pack, unpack

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class BoltStage:
    """Bolt tasks of one level: each is prepared, executes what reached it, and cleans up.

    Attributes:
        plan: the plan.
        attempt: the wave's identity.
        stage_index: which stage.
        frame_fault: installed by tests only.
        deadline: by when the wave has to be done.
    """

    plan: Broadcast[WavePlan]
    attempt: TransactionAttempt
    stage_index: int
    frame_fault: FrameFault | None = None
    deadline: Deadline | None = None

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        task_id = plan.stages[self.stage_index].tasks[partition]
        routes = plan.routes_into(self.stage_index + 1)
        own: list[bytes] = []
        yield from sort_out(records, {task_id}, own, routes)
        frames = _in_order(disturbed(self.frame_fault, task_id, own))
        own.clear()
        post = Post(routes)
        wiring = plan.plain.wirings[task_id]
        with alarm_for(wiring, self.deadline):
            for _ in self._execute(wiring, _unpacked(frames, self.attempt), post):
                yield from post.take()
        yield from post.take()

    def _execute(self, wiring: TaskWiring, frames: Iterator[list[Message]], post: Post) -> Iterator[None]:
        """Runs the bolt; pauses after every frame, so that what it has sent can go, and stops at a failure."""
        packer = MessagePacker(self.attempt, wiring.task_id, post.send, wiring.frame_tuples)
        meter = MetricsObserver()
        task = make_task(wiring, packer.add, self._random(wiring), meter, time.perf_counter_ns)
        failure = task.start()
        for messages in frames:
            failure = failure or _received(task, messages)
            if failure is not None:
                break
            yield
        failure = failure or task.close()
        if failure is not None:
            packed = pack(failure.to_wire())
            post.send(Frame(self.attempt, wiring.task_id, 0, DRIVER, FrameKind.FAILURE, packed))
            return
        packer.close()
        done = pack([wiring.component_id, meter.metrics.to_wire()])
        post.send(Frame(self.attempt, wiring.task_id, 0, DRIVER, FrameKind.METRICS, done))

    def _random(self, wiring: TaskWiring) -> Random:
        parts = (wiring.topology_id, str(self.attempt), str(wiring.task_id))
        return Random(digest64(*(part.encode() for part in parts)))


@dataclass(frozen=True, slots=True)
class SpoutEnd:
    """Stage 0 as it is given what the spouts emitted: one list of frames a partition."""

    stage: BoltStage

    def __call__(self, partition: int, parts: Iterable[list[Addressed]]) -> Iterator[Addressed]:
        return self.stage(partition, chain.from_iterable(parts))


@dataclass(frozen=True, slots=True)
class PlainAckerStage:
    """The last stage: trees of the wave, each on the acker its root names; what ended goes to the driver.

    Attributes:
        plan: the plan.
        attempt: the wave's identity.
        frame_fault: installed by tests only.
    """

    plan: Broadcast[WavePlan]
    attempt: TransactionAttempt
    frame_fault: FrameFault | None = None

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        task_id = plan.stages[-1].tasks[partition]
        own: list[bytes] = []
        routes = plan.routes_into(len(plan.stages))
        yield from sort_out(records, {task_id}, own, routes)
        post = Post(routes)
        packer = MessagePacker(self.attempt, task_id, post.send)

        def send(message: Message) -> None:
            if message.kind is MessageKind.ACKED:  # what did not end well has failed, so nothing else matters
                packer.add(message)

        acker = AckerTask(task_id, send)
        for messages in _unpacked(_in_order(disturbed(self.frame_fault, task_id, own)), self.attempt):
            for message in messages:
                acker.receive(message)
        packer.close()
        yield from post.take()


def wave_drained(collected: Iterable[Addressed]) -> WaveDrained:
    """What the last stage says of a wave (driver)."""
    acked: set[int] = set()
    failures: list[tuple[int, Failure]] = []
    metrics: dict[str, ComponentMetrics] = {}
    for _, packed in collected:
        frame = unpack_frame(packed)
        if frame.kind is FrameKind.FAILURE:
            failures.append((frame.sender, Failure.from_wire(unpack(frame.payload))))
        elif frame.kind is FrameKind.METRICS:
            component_id, done = unpack(frame.payload)
            metrics.setdefault(component_id, ComponentMetrics()).merge(ComponentMetrics.from_wire(done))
        else:
            acked.update(message.root for message in messages_of(frame))
    failures.sort(key=lambda sent: sent[0])
    return WaveDrained(frozenset(acked), tuple(failure for _, failure in failures), metrics)


def _received(task: BoltTask | CoordinatedTask, messages: list[Message]) -> Failure | None:
    for message in messages:
        failure = task.receive(message)
        if failure is not None:
            return failure
    return None


def _in_order(packed_frames: Iterable[bytes]) -> list[bytes]:
    """Frames by sender and sequence; one that came twice counts once."""
    return sorted(set(packed_frames))


def _unpacked(packed_frames: list[bytes], attempt: TransactionAttempt) -> Iterator[list[Message]]:
    """Messages frame by frame.

    A frame that is torn, or of another wave, is left out: trees it had a part in stay open, and so their messages
    fail.
    """
    for packed in packed_frames:
        try:
            frame = unpack_frame(packed)
            messages = messages_of(frame) if frame.attempt == attempt else []
        except (CodecError, ValueError):
            continue
        yield messages
