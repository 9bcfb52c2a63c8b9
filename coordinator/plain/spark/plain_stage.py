"""Runs the bolts of one level of a wave on executors, and reads their reports on the driver.

`stage_context` has the beginning of a task. Random draws are seeded by wave and task: a task that is computed again
does the same again. A bolt's memory lasts for one wave, as its task does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from random import Random
from time import perf_counter_ns

from coordinated_bolt.completeness.acker import WaveTrees
from coordinated_bolt.completeness.failure import Failure
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import FrameKind, SealedFrame, WaveId, open_frame
from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinated_bolt.watching.task_observer import Meter
from coordinated_bolt.wiring import TaskWiring
from coordinator.engines.waves.alarm import Alarm
from coordinator.engines.waves.stage_context import Addressed, Post, StageContext
from coordinator.plain.plain_engine import PlainWave, WaveDrained
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.tasks.bolt_chain import BoltChain, ChainTask
from coordinator.plain.tasks.coordinated_task import make_task
from coordinator.plain.tasks.message_packer import MessagePacker, contents_of, trees_of
from coordinator.plain.tasks.messages import StretchOrMessage
from state.codec import CodecError, digest64, pack, unpack


@dataclass(frozen=True, slots=True)
class BoltStage:
    """Bolt tasks of one level and the tasks chained to them: each prepares, executes its tuples, and cleans up."""

    entry: StageContext[PlainPlan]
    wave_id: WaveId
    stage_index: int

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        slot = self.entry.slot(self.stage_index, partition)
        (task_id,) = slot.tasks
        frames = (yield from slot.read(records))[task_id]
        post = Post(slot.routes)
        wirings = [slot.plan.wirings[each] for each in (task_id, *slot.plan.chained_to(task_id))]
        with slot.alarm(wirings[0]) as alarm:
            for _ in self._execute(wirings, _contents(frames, self.wave_id), post, alarm):
                yield from post.take()
        yield from post.take()

    def _execute(
        self,
        wirings: Sequence[TaskWiring],
        frames: Iterator[list[StretchOrMessage]],
        post: Post,
        alarm: Alarm,
    ) -> Iterator[None]:
        """Runs the bolts of a chain; pauses after every frame, so that finished frames can be sent."""
        meters = {wiring.task_id: Meter(clock=perf_counter_ns) for wiring in wirings}

        def task_of(wiring: TaskWiring, outbox: MessagePacker) -> ChainTask:
            return make_task(wiring, outbox, self._random(wiring), meters[wiring.task_id])

        def packer_of(wiring: TaskWiring, kind: type[MessagePacker]) -> MessagePacker:
            return kind(
                self.wave_id,
                wiring.task_id,
                post.send,
                wiring.frame_tuples,
                acker_tasks=(DRIVER,) if wiring.acker_tasks else (),
            )

        failed = yield from BoltChain(wirings, task_of, packer_of, partial(alarm.begin, None)).run(frames)
        if failed is not None:
            self._tell_driver(post, failed.task_id, FrameKind.FAILURE, pack(failed.failure.to_wire()))
            return
        for wiring in wirings:
            done = pack([wiring.component_id, meters[wiring.task_id].metrics.to_wire()])
            self._tell_driver(post, wiring.task_id, FrameKind.METRICS, done)

    def _tell_driver(self, post: Post, task_id: int, kind: FrameKind, payload: bytes) -> None:
        post.send(SealedFrame(self.wave_id, task_id, 0, DRIVER, kind, payload))

    def _random(self, wiring: TaskWiring) -> Random:
        parts = (wiring.topology_id, str(self.wave_id), str(wiring.task_id))
        return Random(digest64(*(part.encode() for part in parts)))


@dataclass(frozen=True, slots=True)
class SpoutEnd:
    """Stage 0, whose input is one list of frames per partition: the tuples of the spouts."""

    stage: BoltStage

    def __call__(self, partition: int, parts: Iterable[list[Addressed]]) -> Iterator[Addressed]:
        return self.stage(partition, chain.from_iterable(parts))


def wave_drained(collected: Iterable[Addressed], wave: PlainWave) -> WaveDrained:
    """Returns the result of a wave from the reports of its tasks (driver).

    A frame that arrived twice counts once. Damaged frames, and frames of another wave, are left out, so that their
    trees stay open and their messages fail.
    """
    trees = WaveTrees()
    failures: list[tuple[int, Failure]] = []
    metrics: dict[str, ComponentMetrics] = {}
    for frame in _opened((packed for _, packed in collected), wave.wave_id):
        if frame.kind is FrameKind.FAILURE:
            failures.append((frame.sender, Failure.from_wire(unpack(frame.payload))))
        elif frame.kind is FrameKind.METRICS:
            component_id, done = unpack(frame.payload)
            metrics.setdefault(component_id, ComponentMetrics()).merge(ComponentMetrics.from_wire(done))
        else:
            trees.ack(*trees_of(frame).acked)
    failures.sort(key=lambda sent: sent[0])
    complete = [trees.complete(begun) for begun in wave.begun]
    acked = complete[0] if len(complete) == 1 else frozenset().union(*complete)
    return WaveDrained(acked, tuple(failure for _, failure in failures), metrics)


def _opened(packed_frames: Iterable[bytes], wave_id: WaveId) -> Iterator[SealedFrame]:
    for packed in dict.fromkeys(packed_frames):
        with suppress(CodecError, ValueError):
            frame = open_frame(packed)
            if frame.wave_id == wave_id:
                yield frame


def _contents(packed_frames: Iterable[bytes], wave_id: WaveId) -> Iterator[list[StretchOrMessage]]:
    """Yields the contents of each frame; leaves out the same frames as `wave_drained`, whose trees then stay open."""
    for frame in _opened(packed_frames, wave_id):
        with suppress(CodecError, ValueError):
            yield contents_of(frame)
