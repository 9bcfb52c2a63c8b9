"""What runs on executors: one callable per stage, shipped by reference with its plan and wave.

Each takes the frames of one partition and yields ``(partition of the next stage, frame)`` pairs. A
stage collects its frames and puts them in order before it executes any, so that it does exactly the
same when it is computed again. Frames for stages further down pass through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from committers.committer_executor import CommitTask
from committers.refusing_reader import RefusingReader
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_outbox import attempt_outboxes
from coordinated_bolt.batches.batch_acker import AttemptOutcome, BatchAcker
from coordinated_bolt.batches.batch_task import BatchTask, Inbox
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import Frame, FrameKind, unpack_frame
from coordinator.emitting.emitter_task import Batch, Emitted, EmitterTask
from coordinator.emitting.reporting import batch_edges, report_to_acker
from coordinator.planning.plan import Plan
from coordinator.spark.alarm import Deadline, alarm_for
from coordinator.spark.frame_flow import Addressed, FrameFault, Post, disturbed, sort_out
from coordinator.spark.worker import settle_worker
from coordinator.transactional.engine import EarlyCommit, GroupExecuted, WaveProcessed
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack
from state.redis_reader import RedisReader, load_redis_url

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class WaveInput:
    """What a wave is about.

    Attributes:
        wave_id: its number in this run.
        batches: the attempts, ascending.
        stored: scope -> txid -> metadata of partitions, as far as the wave may need it.
        frame_fault: installed by tests only.
        deadline: by when its processing phase has to be done.
    """

    wave_id: int
    batches: tuple[Batch, ...]
    stored: dict[str, dict[int, Any]] = field(default_factory=dict)
    frame_fault: FrameFault | None = None
    deadline: Deadline | None = None

    def without_content(self) -> WaveInput:
        """The same, as stages need it that do not emit."""
        batches = tuple(Batch(batch.attempt, b"") for batch in self.batches)
        return WaveInput(self.wave_id, batches, {}, self.frame_fault, self.deadline)


@dataclass(frozen=True, slots=True)
class EmitterStage:
    """Stage 0: spout tasks emit their share of every batch."""

    plan: Broadcast[Plan]
    wave: WaveInput

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        task_id = plan.stages[0].tasks[partition]
        post = Post(plan.routes(0))
        wiring = plan.wirings[task_id]
        emitter = EmitterTask(wiring, post.send, self.wave.stored)
        with alarm_for(wiring, self.wave.deadline) as alarm:
            for emitted in emitter.run(self.wave.batches, alarm.begin):
                report_to_acker(plan, task_id, emitted, post.send)
                yield from post.take()


@dataclass(frozen=True, slots=True)
class ProcessingStage:
    """Stages 1..L: bolts of the processing phase."""

    plan: Broadcast[Plan]
    wave: WaveInput
    stage_index: int

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        task_id = plan.stages[self.stage_index].tasks[partition]
        routes = plan.routes(self.stage_index)
        own: list[bytes] = []
        yield from sort_out(records, {task_id}, own, routes)
        inbox = Inbox(disturbed(self.wave.frame_fault, task_id, own))
        own.clear()
        post = Post(routes)
        wiring = plan.wirings[task_id]
        task = BatchTask(wiring, CoordinatedBolt(wiring, attempt_outboxes(wiring, post.send), clock=perf_counter_ns))
        with alarm_for(wiring, self.wave.deadline) as alarm:
            for batch in self.wave.batches:
                alarm.begin(batch.attempt)
                result = task.run(batch.attempt, inbox.take(batch.attempt))
                report_to_acker(plan, task_id, Emitted(batch.attempt, result), post.send)
                yield from post.take()


@dataclass(frozen=True, slots=True)
class AckerStage:
    """The acker partitions of the meeting stage: verdicts on the processing phase, to the driver."""

    plan: Broadcast[Plan]
    wave: WaveInput

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[bytes]:
        plan = self.plan.value
        task_id = plan.stages[plan.meeting_stage].tasks[partition]
        init = {
            batch.attempt: batch_edges(plan, batch)
            for batch in self.wave.batches
            if plan.acker_of(batch.attempt.txid) == task_id
        }
        acker = BatchAcker(task_id, init, plan.processing_tasks())
        own: list[bytes] = []
        for _ in sort_out(records, {task_id}, own, {}):
            pass
        for packed in sorted(disturbed(self.wave.frame_fault, task_id, own)):
            try:
                acker.receive(unpack_frame(packed))
            except (CodecError, ValueError):
                continue  # its attempt lacks the report and fails
        yield pack([outcome.to_wire() for outcome in acker.outcomes()])


@dataclass(frozen=True, slots=True)
class Reading:
    """What executors need to read state.

    Attributes:
        credentials_path: where they find the Redis URL if their environment has none.
        nonce: of the run they belong to; state that another run owns is not shown to them.
    """

    credentials_path: str
    nonce: str


@dataclass(frozen=True, slots=True)
class CommitStage:
    """The commit partitions of the meeting stage, and the stages below it.

    Attributes:
        plan: the plan.
        wave: the wave, for its faults.
        stage_index: which stage.
        attempts: the group, in order.
        composed: whether tasks compose their prefix.
        reading: how its committers read state.
        deadline: by when the phase has to be done.
    """

    plan: Broadcast[Plan]
    wave: WaveInput
    stage_index: int
    attempts: tuple[TransactionAttempt, ...]
    composed: bool
    reading: Reading
    deadline: Deadline | None = None

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        task_id = plan.stages[self.stage_index].tasks[partition]
        if task_id not in plan.commit_tasks:
            return
        last = self.stage_index == len(plan.stages) - 1
        routes = {} if last else plan.routes(self.stage_index)
        routes[DRIVER] = 0 if last else min(routes.values())
        own: list[bytes] = []
        yield from sort_out(records, {task_id}, own, routes)
        inbox = Inbox(disturbed(self.wave.frame_fault, task_id, own))
        own.clear()
        post = Post(routes)
        reader = _LazyReader(self.reading, plan.topology_id)
        task = CommitTask(plan.wirings[task_id], reader, post.send, clock=perf_counter_ns)
        with alarm_for(plan.wirings[task_id], self.deadline) as alarm:
            report = task.run_group(self.attempts, inbox, composed=self.composed, begin=alarm.begin)
        post.send(Frame(self.attempts[0], task_id, 0, DRIVER, FrameKind.VERDICT, pack(report.to_wire())))
        yield from post.take()


@dataclass(frozen=True, slots=True)
class MeetingStage:
    """The meeting stage in one job: ackers, and beside them committers that run on trust and may not read.

    Yields (task id, packed verdicts): an acker's on the processing phase, a committer's on each group of
    `early`, up to the first it could not finish.
    """

    ackers: AckerStage
    early: EarlyCommit

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[tuple[int, bytes]]:
        settle_worker()
        plan, wave = self.ackers.plan.value, self.ackers.wave
        task_id = plan.stages[plan.meeting_stage].tasks[partition]
        if task_id not in plan.commit_tasks:
            yield from ((task_id, packed) for packed in self.ackers(partition, records))
            return
        own: list[bytes] = []
        for _ in sort_out(records, {task_id}, own, {}):
            pass
        inbox = Inbox(disturbed(wave.frame_fault, task_id, own))
        own.clear()
        task = CommitTask(plan.wirings[task_id], RefusingReader(), Post({}).send, clock=perf_counter_ns)
        reports = []
        with alarm_for(plan.wirings[task_id], wave.deadline) as alarm:
            for attempts in self.early.groups:
                report = task.run_group(attempts, inbox, composed=self.early.composed, begin=alarm.begin)
                reports.append(report.to_wire())
                if report.good_count() < len(attempts):
                    break
        yield task_id, pack(reports)


def wave_processed(
    plan: Plan, wave_id: int, early: EarlyCommit, verdicts: Iterable[tuple[int, bytes]]
) -> WaveProcessed:
    """What the meeting stage says of a wave (driver); a group some committer did not come to is left out."""
    outcomes: list[AttemptOutcome] = []
    reported: list[list[TaskReport]] = []
    for task_id, packed in verdicts:
        wires = unpack(packed)
        if task_id in plan.commit_tasks:
            reported.append([TaskReport.from_wire(wire) for wire in wires])
        else:
            outcomes += [AttemptOutcome.from_wire(wire) for wire in wires]
    groups = zip(early.groups, zip(*reported, strict=False), strict=False)  # as far as all committers came
    executed = tuple(GroupExecuted(wave_id, attempts, reports) for attempts, reports in groups)
    return WaveProcessed(wave_id, tuple(outcomes), executed)


class _LazyReader:
    """Connects to Redis when a committer reads for the first time."""

    def __init__(self, reading: Reading, topology_id: str) -> None:
        self._reading = reading
        self._topology_id = topology_id
        self._reader: RedisReader | None = None

    def read(self, name: str, kind: Any, fields: Any, as_of_txid: int) -> list[bytes | None]:
        if self._reader is None:
            url = load_redis_url(self._reading.credentials_path)
            self._reader = RedisReader(url, self._topology_id, nonce=self._reading.nonce)
        return self._reader.read(name, kind, fields, as_of_txid)
