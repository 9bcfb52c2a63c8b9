"""The stages of a transactional topology as they run on executors: callables, shipped with their plan and wave.

Each takes the frames of one partition, runs the partition's tasks one after the other, and yields ``(partition of the
next stage, frame)`` pairs. `stage_context` has what they all do first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from committers.committer_executor import CommitTask, RefusingReader
from committers.task_report import TaskReport
from coordinated_bolt.batches.attempt_result import AttemptResult, ResultTable
from coordinated_bolt.batches.batch_acker import BatchAcker
from coordinated_bolt.batches.batch_task import BatchTask
from coordinated_bolt.batches.chained_tasks import ChainedTasks
from coordinated_bolt.batches.coordinated_bolt import CoordinatedBolt
from coordinated_bolt.batches.wave_outbox import WaveOutbox
from coordinated_bolt.transport.blocks import Inbox
from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.transport.frames import FrameKind, SealedFrame, open_frame
from coordinated_bolt.transport.wave_attempts import WaveAttempts, places_in
from coordinated_bolt.wiring import TaskWiring
from coordinator.engines.waves.alarm import Alarm
from coordinator.engines.waves.stage_context import Addressed, Post, StageContext, StageSlot
from coordinator.spouts.batch import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.emitter_task import EmitterTask, EmittingTasks, chained_to, report_chain
from coordinator.transactional.engine import EarlyCommit, GroupExecuted, WaveProcessed
from state.attempt import TransactionAttempt
from state.codec import CodecError, pack, unpack
from state.kinds.session import StateReader
from state.redis_owner.reader import RedisReader, load_redis_url

Ended = tuple[TransactionAttempt, AttemptResult | None]
"""An attempt that a task has ended, and its result, which is None if its bolt did not have to run."""


@dataclass(frozen=True, slots=True)
class WaveInput:
    """The input of a wave.

    Attributes:
        wave_id: the number of the wave in this run.
        batches: the attempts, ascending.
        stored: scope -> txid -> metadata of partitions, as far as the wave may need them.
    """

    wave_id: int
    batches: tuple[Batch, ...]
    stored: dict[str, dict[int, Any]] = field(default_factory=dict)

    def without_content(self) -> WaveInput:
        """Returns the same without the batches' content, which only stages that emit need."""
        return WaveInput(self.wave_id, tuple(Batch(batch.attempt, b"") for batch in self.batches))

    def with_cuts(self, outcomes: Iterable[AttemptResult]) -> WaveInput:
        """Returns the same with the cuts that emitters have made of partitions, for them to find."""
        stored = {scope: dict(cuts) for scope, cuts in self.stored.items()}
        for outcome in outcomes:
            for scope, cut in outcome.metadata.items():
                stored.setdefault(scope, {})[outcome.attempt.txid] = cut
        return WaveInput(self.wave_id, self.batches, stored)

    def attempts(self) -> WaveAttempts:
        """Returns the attempts, numbered by the places that the wave's frames use."""
        return WaveAttempts(batch.attempt for batch in self.batches)


@dataclass(frozen=True, slots=True)
class EmitterStage:
    """Stage 0: spout tasks emit their share of every batch, and the tasks chained to them run at once.

    Attributes:
        deals: into how many ranges of consecutive attempts the wave is divided, so that no slot is idle. Each partition
            of the plan becomes as many partitions.
    """

    entry: StageContext[Plan]
    wave: WaveInput
    deals: int = 1

    @classmethod
    def of(cls, entry: StageContext[Plan], wave: WaveInput) -> EmitterStage:
        """Divides a wave into as many ranges as there are slots for (driver)."""
        plan = entry.plan.value
        idle = (plan.slots or 0) // len(plan.stages[0].partitions) if plan.has_independent_batches else 1
        return cls(entry, wave, max(1, min(idle, len(wave.batches))))

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self.entry.plan.value.stages[0].partitions) * self.deals

    def part(self, partition: int) -> tuple[int, range]:
        """Returns the plan's partition that a partition belongs to, and the places of its attempts."""
        place, deal = divmod(partition, self.deals)
        begin, end = (len(self.wave.batches) * border // self.deals for border in (deal, deal + 1))
        return place, range(begin, end)

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Addressed]:
        place, dealt = self.part(partition)
        slot, batches = self.entry.slot(0, place), self.wave.batches
        own = (1 << dealt.stop) - (1 << dealt.start)
        emitting = EmittingTasks(slot.plan.wirings[slot.tasks[0]])
        idle = emitting.idle_places(batches)

        def emitted(wiring: TaskWiring, chained: ChainedTasks, outbox: WaveOutbox, alarm: Alarm) -> Iterator[Ended]:
            emitter = EmitterTask(
                wiring, outbox.carrier, self.wave.stored, new_outbox=chained.outboxes(wiring), emitting=emitting
            )
            skipped = _skipped(slot.plan, wiring, chained, outbox, idle[wiring.task_index] & own)
            yield from emitter.run([batches[place] for place in dealt if not skipped >> place & 1], alarm.begin)

        yield from _run_tasks(slot, self.wave.attempts(), emitted)


@dataclass(frozen=True, slots=True)
class ProcessingStage:
    """Stages 1..L: bolts of the processing phase, and the bolts chained to them."""

    entry: StageContext[Plan]
    wave: WaveInput
    stage_index: int

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        slot, wave = self.entry.slot(self.stage_index, partition), self.wave.attempts()
        blocks = yield from slot.read(records, wave=wave.attempts)

        def executed(wiring: TaskWiring, chained: ChainedTasks, outbox: WaveOutbox, alarm: Alarm) -> Iterator[Ended]:
            inbox = Inbox(blocks.pop(wiring.task_id), wave)
            task = BatchTask(wiring, CoordinatedBolt(wiring, chained.outboxes(wiring), clock=perf_counter_ns))
            skipped = _skipped(slot.plan, wiring, chained, outbox, task.empty_places(inbox))
            for place, attempt in enumerate(wave.attempts):
                if not skipped >> place & 1:
                    alarm.begin(attempt)
                    yield attempt, task.run(attempt, inbox.take(attempt))

        yield from _run_tasks(slot, wave, executed)


def _run_tasks(
    slot: StageSlot[Plan],
    wave: WaveAttempts,
    ends_of: Callable[[TaskWiring, ChainedTasks, WaveOutbox, Alarm], Iterator[Ended]],
) -> Iterator[Addressed]:
    """Runs the tasks of a partition and the tasks chained to them; yields after each attempt what it has sent."""
    post = Post(slot.routes)
    outbox = WaveOutbox(wave, post.send)
    wirings = [slot.plan.wirings[task_id] for task_id in slot.tasks]
    with slot.alarm(wirings[0]) as alarm:
        for wiring in alarm.through(wirings):
            task_id = wiring.task_id
            chained = chained_to(slot.plan, task_id, outbox.carrier, clock=perf_counter_ns)
            for attempt, result in ends_of(wiring, chained, outbox, alarm):
                report_chain(slot.plan, task_id, attempt, result, chained, begin=alarm.begin, send=outbox.report)
                outbox.flush_if_full()
                yield from post.take()
    outbox.flush()
    yield from post.take()


def _skipped(plan: Plan, head: TaskWiring, chained: ChainedTasks, outbox: WaveOutbox, idle: int) -> int:
    """Reports on attempts without input for a task, unless a bolt chained to it has to run; returns their places."""
    if not idle or not chained.skips_empty_batches:
        return 0
    places_of: defaultdict[int, int] = defaultdict(int)
    for place in places_in(idle):
        places_of[plan.acker_of(outbox.wave.attempts[place].txid)] |= 1 << place
    for task_id in (head.task_id, *plan.chained_to(head.task_id)):
        outbox.skip(plan.wirings[task_id], idle, places_of)
    return idle


@dataclass(frozen=True, slots=True)
class MeetingStage:
    """The meeting stage in job 1: ackers, and committers that may not read and do not wait for the ackers' results.

    Yields (task id, packed): for an acker, its results of the processing phase; for a committer, its reports on the
    groups of `early`, up to the first that it could not finish.
    """

    entry: StageContext[Plan]
    wave: WaveInput
    early: EarlyCommit

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[tuple[int, bytes]]:
        slot, wave = self.entry.slot(self.entry.plan.value.meeting_stage, partition), self.wave.attempts()
        plan = slot.plan
        blocks = yield from slot.read(records, wave=wave.attempts, carries=False)
        if plan.commit_tasks.isdisjoint(slot.tasks):
            for task_id in slot.tasks:
                yield task_id, pack(self._acknowledged(plan, task_id, wave, blocks.pop(task_id)))
            return
        wirings = [plan.wirings[task_id] for task_id in slot.tasks]
        with slot.alarm(wirings[0]) as alarm:
            for wiring in alarm.through(wirings):
                yield wiring.task_id, pack(self._committed(wiring, wave, blocks.pop(wiring.task_id), alarm))

    def _acknowledged(self, plan: Plan, task_id: int, wave: WaveAttempts, blocks: list[bytes]) -> list[Any]:
        own = [batch for batch in self.wave.batches if plan.acker_of(batch.attempt.txid) == task_id]
        emitting = EmittingTasks(plan.wirings[plan.emitter_tasks[0]])
        init = {batch.attempt: emitting.edges(plan, batch) for batch in own}
        acker = BatchAcker(task_id, init, plan.processing_tasks())
        for packed in blocks:
            try:
                block = open_frame(packed)
            except (CodecError, ValueError):
                continue  # its attempts lack this report and fail
            if block.kind is FrameKind.ACK and block.wave_id == wave.key:
                acker.receive(block.sender, wave.attempts, block.payload)
        return ResultTable(acker.outcomes()).to_wire()

    def _committed(self, wiring: TaskWiring, wave: WaveAttempts, blocks: list[bytes], alarm: Alarm) -> list[Any]:
        inbox = Inbox(blocks, wave)
        blocks.clear()  # they are in the inbox, unpacked
        nowhere = WaveOutbox(wave, Post({}).send).carrier  # in a flat commit phase, no bolts are downstream
        commit_task = CommitTask(wiring, RefusingReader(), nowhere, clock=perf_counter_ns)
        reports = []
        for attempts in self.early.groups:
            report = commit_task.run_group(attempts, inbox, composed=self.early.composed, begin=alarm.begin)
            reports.append(report.to_wire())
            if report.results.good_count() < len(attempts):
                break
        return reports


@dataclass(frozen=True, slots=True)
class Reading:
    """The values that executors need to read state.

    Attributes:
        credentials_path: the file with the Redis URL, used if their environment has none.
        nonce: the nonce of their run; they cannot read state that another run owns.
    """

    credentials_path: str
    nonce: str

    def reader(self, topology_id: str, shard_count: int) -> StateReader:
        """Returns the reader for the committers of one task."""
        return _LazyReader(self, topology_id, shard_count)


@dataclass(frozen=True, slots=True)
class CommitStage:
    """The commit partitions of the meeting stage in job 2, and the stages below it.

    Attributes:
        wave: all attempts of the wave.
        attempts: the group, in order.
        composed: whether each task composes the changes of its prefix into one write set.
    """

    entry: StageContext[Plan]
    stage_index: int
    wave: tuple[TransactionAttempt, ...]
    attempts: tuple[TransactionAttempt, ...]
    composed: bool
    reading: Reading

    def __call__(self, partition: int, records: Iterable[Addressed]) -> Iterator[Addressed]:
        slot = self.entry.slot(self.stage_index, partition)
        if slot.plan.commit_tasks.isdisjoint(slot.tasks):
            return
        wave = WaveAttempts(self.wave)
        blocks = yield from slot.read(records, wave=wave.attempts)
        post = Post(slot.routes)
        outbox = WaveOutbox(wave, post.send)
        reader = self.reading.reader(slot.plan.topology_id, slot.plan.shard_count)
        wirings = [slot.plan.wirings[task_id] for task_id in slot.tasks]
        with slot.alarm(wirings[0]) as alarm:
            for wiring in alarm.through(wirings):
                inbox = Inbox(blocks.pop(wiring.task_id), wave)
                commit_task = CommitTask(wiring, reader, outbox.carrier, clock=perf_counter_ns)
                report = commit_task.run_group(self.attempts, inbox, composed=self.composed, begin=alarm.begin)
                post.send(SealedFrame(wave.key, wiring.task_id, 0, DRIVER, FrameKind.VERDICT, pack(report.to_wire())))
                yield from post.take()
        outbox.flush()
        yield from post.take()


def reports_among(blocks: Iterable[bytes]) -> list[TaskReport]:
    """Returns the reports of the commit tasks from the blocks that the last commit stage has sent (driver).

    Raises:
        CodecError: a block is damaged.
    """
    unpacked = map(open_frame, blocks)
    return [TaskReport.from_wire(unpack(block.payload)) for block in unpacked if block.kind is FrameKind.VERDICT]


def wave_processed(
    plan: Plan, wave_id: int, early: EarlyCommit, verdicts: Iterable[tuple[int, bytes]]
) -> WaveProcessed:
    """Returns a wave's results from the meeting stage, without groups that some committer has not reached (driver)."""
    outcomes: list[AttemptResult] = []
    reported: list[list[TaskReport]] = []
    for task_id, packed in verdicts:
        wires = unpack(packed)
        if task_id in plan.commit_tasks:
            reported.append([TaskReport.from_wire(wire) for wire in wires])
        else:
            outcomes += ResultTable.from_wire(wires)
    groups = zip(early.groups, zip(*reported, strict=False), strict=False)  # as far as all committers got
    executed = tuple(GroupExecuted(wave_id, attempts, reports) for attempts, reports in groups)
    return WaveProcessed(wave_id, tuple(outcomes), executed)


class _LazyReader:
    """Connects to Redis when a committer reads for the first time."""

    def __init__(self, reading: Reading, topology_id: str, shard_count: int) -> None:
        self._reading = reading
        self._topology_id, self._shard_count = topology_id, shard_count
        self._reader: StateReader | None = None

    def read(self, name: str, kind: Any, fields: Any, as_of_txid: int) -> list[bytes | None]:
        if self._reader is None:
            url = load_redis_url(self._reading.credentials_path)
            nonce = self._reading.nonce
            self._reader = RedisReader(url, self._topology_id, nonce=nonce, shard_count=self._shard_count)
        return self._reader.read(name, kind, fields, as_of_txid)
