"""The engine in one process: every tuple travels alone, and every seed is an interleaving.

The coordinator, the acker, the tasks and the commit are the same as in a run on Spark. Only the transport differs:
tuples travel one by one through a `Mailroom`. A phase ends when no message of its wave is in flight; an attempt that is
incomplete by then fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from coordinated_bolt.batches.attempt_reports import TaskReports
from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.batches.batch_acker import BatchAcker
from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import SingleFrames
from coordinator.spouts.batch import Batch
from coordinator.testing.cluster.batch_tasks import BatchTuple, CommittingTask, GroupStart, ProcessingTask, TaskInput
from coordinator.testing.cluster.mailroom import Mailroom
from coordinator.testing.cluster.recorder import AttemptRecorder
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.emitter_task import EmitterTask, EmittingTasks
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed, WaveProcessed
from state.attempt import TransactionAttempt
from state.kinds.session import StateReader

FrameFault = Callable[[Frame], Sequence[Frame]]
"""Fault point ``frames.sent``: a frame -> the frames that arrive instead, in this order."""


class _Phase(Enum):
    PROCESSING = "processing"
    PROCESSED = "processed"
    COMMITTING = "committing"


@dataclass(slots=True)
class _Wave:
    wave_id: int
    batches: tuple[Batch, ...]
    emitters: dict[int, EmitterTask]
    ackers: dict[int, BatchAcker]
    phase: _Phase = _Phase.PROCESSING
    group: tuple[TransactionAttempt, ...] = ()
    under_way: int = 0


class LocalEngine:
    """Runs waves in the calling thread, one message at each `step`.

    Args:
        plan: plan of the topology; its tasks should send frames of one tuple.
        frame_fault: loses, doubles, alters or replaces frames; for tests.
        holds: returns whether to withhold a group whose commit phase has run; it may be delivered later.

    Attributes:
        command_count: number of commands from the coordinator so far; shows whether it is still active.
        recorders: task id -> what the task emitted.
    """

    overlaps = True
    queues = False

    def __init__(
        self,
        plan: Plan,
        mailroom: Mailroom[TaskInput],
        reader: StateReader,
        *,
        frame_fault: FrameFault | None = None,
        holds: Callable[[GroupExecuted], bool] = lambda executed: False,
    ) -> None:
        self._plan, self._holds = plan, holds
        self._mailroom = mailroom
        self._frame_fault = frame_fault
        self._carrier = SingleFrames(self._send)
        self.command_count = 0
        self.recorders = {task_id: AttemptRecorder() for task_id in plan.wirings}
        self._events: deque[Event] = deque()
        self._waves: dict[int, _Wave] = {}
        self._wave_of: dict[TransactionAttempt, _Wave] = {}
        self._processing: dict[int, ProcessingTask] = {}
        self._committing: dict[int, CommittingTask] = {}
        self._frame_readers = {*plan.acker_tasks, *plan.wirings} - {*plan.emitter_tasks}
        for task_id in plan.emitter_tasks:
            mailroom.attach(task_id, self._receiver(self._emit))
        for task_id in plan.acker_tasks:
            mailroom.attach(task_id, self._receiver(self._acknowledge))
        for task_id, wiring in plan.wirings.items():
            recorder = self.recorders[task_id]
            if task_id in plan.commit_tasks:
                self._committing[task_id] = CommittingTask(wiring, reader, self._carrier, plan.commit_tasks, recorder)
                mailroom.attach(task_id, self._receiver(self._commit_tuple))
            elif task_id not in plan.emitter_tasks:
                self._processing[task_id] = ProcessingTask(wiring, self._carrier, self._report, recorder)
                mailroom.attach(task_id, self._receiver(self._process_tuple))

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Sends the batch tuples of a wave to the emitters."""
        self.command_count += 1
        plan = self._plan
        emitting = EmittingTasks(plan.wirings[plan.emitter_tasks[0]])
        emitters = {
            task: EmitterTask(
                plan.wirings[task], self._carrier, stored, observer=self.recorders[task], emitting=emitting
            )
            for task in plan.emitter_tasks
        }
        wave = self._waves[wave_id] = _Wave(wave_id, batches, emitters, {})
        for acker_task in plan.acker_tasks:
            own = [batch for batch in batches if plan.acker_of(batch.attempt.txid) == acker_task]
            init = {batch.attempt: emitting.edges(plan, batch) for batch in own}
            wave.ackers[acker_task] = BatchAcker(acker_task, init, plan.processing_tasks())
        for batch in batches:
            self._wave_of[batch.attempt] = wave
            for recorder in self.recorders.values():
                recorder.begin(batch.attempt)
            for task in plan.emitter_tasks:
                self._post(BatchTuple(task, batch))

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Sends the ID tuples of a group to the commit tasks; without commit tasks, the group is done at once."""
        self.command_count += 1
        wave = self._waves[wave_id]
        if not self._committing:
            self._executed(GroupExecuted(wave_id, attempts, ()))
            return
        wave.phase, wave.group = _Phase.COMMITTING, attempts
        for task_id, task in self._committing.items():
            for attempt in filter(task.is_spent, attempts):
                self.recorders[task_id].begin(attempt)
                task.prepare(attempt)
        for task_id in self._committing:
            self._post(GroupStart(task_id, attempts, composed))

    def cancel(self, wave_id: int) -> None:
        """Cancels the phase that runs for a wave, and discards its messages in flight."""
        self.command_count += 1
        wave = self._waves.get(wave_id)
        if wave is None or wave.phase is _Phase.PROCESSED:
            return
        self._discard(wave)
        if wave.phase is _Phase.PROCESSING:
            self._events.append(WaveCrashed(wave_id, "cancelled"))
        else:
            for task in self._committing.values():
                task.end_group(wave.group)
            self._events.append(GroupCrashed(wave_id, wave.group, "cancelled"))
        wave.phase = _Phase.PROCESSED

    def release(self, wave_id: int) -> None:
        """Frees everything that tasks keep for a wave."""
        self.command_count += 1
        wave = self._waves.pop(wave_id)
        if wave.under_way:  # a wave that has ended has messages only because of a fault
            self._discard(wave)
        for emitter in wave.emitters.values():
            emitter.close()
        for batch in wave.batches:
            for processing in self._processing.values():
                processing.forget(batch.attempt)
            for committing in self._committing.values():
                committing.forget(batch.attempt)
            del self._wave_of[batch.attempt]

    def step(self) -> bool:
        """Delivers one message; returns False if there was none."""
        return self._mailroom.step()

    def deliver(self, event: Event) -> None:
        """Makes an event from outside the next event."""
        self._events.appendleft(event)

    def has_event(self) -> bool:
        """Returns whether `next_event` has an event."""
        return bool(self._events)

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the next event, or None; never waits, because only `step` makes events."""
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        """Cancels and frees everything."""
        for wave_id in list(self._waves):
            self.cancel(wave_id)
            self.release(wave_id)

    def _send(self, frame: Frame) -> None:
        for arriving in (frame,) if self._frame_fault is None else self._frame_fault(frame):
            if arriving.target in self._frame_readers:
                self._post(arriving)

    def _report(self, task_id: int, attempt: TransactionAttempt, result: AttemptResult | None) -> None:
        acker_task = self._plan.acker_of(attempt.txid)
        reports = TaskReports(task_id, acker_task)
        reports.add(0, result)
        self._send(Frame(attempt, task_id, 0, acker_task, FrameKind.ACK, reports.to_payload()))

    def _discard(self, wave: _Wave) -> None:
        self._mailroom.discard(lambda message: self._wave_of.get(message.attempt) is wave)
        wave.under_way = 0

    def _post(self, message: TaskInput) -> None:
        wave = self._wave_of.get(message.attempt)
        if wave is not None:  # None if a fault has made up an attempt
            wave.under_way += 1
            self._mailroom.send(message)

    def _receiver(self, handle: Callable[[Any, _Wave], None]) -> Callable[[TaskInput], None]:
        def receive(message: TaskInput) -> None:
            wave = self._wave_of[message.attempt]
            handle(message, wave)
            wave.under_way -= 1
            if not wave.under_way:
                self._phase_over(wave)

        return receive

    def _emit(self, message: BatchTuple, wave: _Wave) -> None:
        emitter = wave.emitters[message.target]
        self._report(message.target, message.attempt, emitter.emit(message.batch))
        if message.batch is wave.batches[-1]:
            emitter.close()

    def _process_tuple(self, frame: Frame, wave: _Wave) -> None:
        self._processing[frame.target].receive(frame)

    def _commit_tuple(self, message: Frame | GroupStart, wave: _Wave) -> None:
        task = self._committing[message.target]
        if isinstance(message, GroupStart):
            task.begin(message.attempts, composed=message.composed)
        else:
            task.receive(message)

    def _acknowledge(self, frame: Frame, wave: _Wave) -> None:
        if frame.kind is FrameKind.ACK:  # only a fault sends an acker anything else
            wave.ackers[frame.target].receive(frame.sender, (frame.attempt,), frame.payload)

    def _phase_over(self, wave: _Wave) -> None:
        if wave.phase is _Phase.PROCESSING:
            for task in self._processing.values():
                for batch in wave.batches:
                    task.end(batch.attempt)
            if not wave.under_way:  # else the phase ends once the reports just sent have arrived
                outcomes = [outcome for acker in wave.ackers.values() for outcome in acker.outcomes()]
                wave.phase = _Phase.PROCESSED
                self._events.append(WaveProcessed(wave.wave_id, tuple(outcomes)))
        elif wave.phase is _Phase.COMMITTING:
            reports = [task.end_group(wave.group) for task in self._committing.values()]
            wave.phase = _Phase.PROCESSED
            self._executed(GroupExecuted(wave.wave_id, wave.group, tuple(reports)))

    def _executed(self, executed: GroupExecuted) -> None:
        if not self._holds(executed):
            self._events.append(executed)
