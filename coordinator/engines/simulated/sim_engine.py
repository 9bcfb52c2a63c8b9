"""The stages Spark runs, run in virtual time: tasks are retried, twinned, recomputed and lost, frames too.

A job is a generator that yields how long its next step takes; whatever is cancelled or released meanwhile is
never resumed. What becomes of its tasks and frames is in `executors`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from types import SimpleNamespace
from typing import Any

from coordinator.engines.simulated.executors import Executors, Output, Stage, TaskDiedError
from coordinator.engines.simulated.fault_plan import FaultPlan
from coordinator.engines.simulated.timeline import Timeline
from coordinator.engines.spark.shares import ShareStage, shares_of, shares_processed
from coordinator.engines.spark.stage import (
    CommitStage,
    EmitterStage,
    MeetingStage,
    ProcessingStage,
    Reading,
    WaveInput,
    reports_among,
    wave_processed,
)
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.spouts.batch_emitters import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt
from state.codec import CodecError

STEP_S = 0.02
FOREVER_S = 1e6


@dataclass(slots=True, eq=False)
class Job:
    """What runs for a wave: its processing phase, or the commit phase of a group."""

    steps: Iterator[float]
    crashed: WaveCrashed | GroupCrashed
    executors: Executors
    is_over: bool = False

    def reach(self, point: str) -> None:
        """A point of the code, at which the worker of a task may be killed."""
        self.executors.reach(point)


@dataclass(slots=True)
class _KeptWave:
    """What executors keep of a wave until it is released.

    Attributes:
        shuffled: what each task of the last processing stage wrote; None if it has not written anything.
    """

    given: WaveInput
    shuffled: list[Output] | None = None
    job: Job | None = None


class SimEngine:
    """Runs waves and groups.

    Args:
        reading: what its committers read state with.
        wait: the driver's, for `next_event`.

    Attributes:
        waves: what is kept, by wave.
    """

    overlaps = True
    queues = True

    def __init__(
        self,
        plan: Plan,
        timeline: Timeline,
        faults: FaultPlan,
        random: Random,
        *,
        reading: Reading,
        wait: Callable[[float, Callable[[], bool]], None],
    ) -> None:
        self._plan = plan
        shipped: Any = SimpleNamespace(value=plan)
        self._entry: StageEntry[Plan] = StageEntry(shipped)
        self._timeline, self._faults, self._random = timeline, faults, random
        self._executors = Executors(faults, random)
        self._reading = reading
        self._wait = wait
        self._events: deque[Event] = deque()
        self.waves: dict[int, _KeptWave] = {}

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        copied = {scope: dict(values) for scope, values in stored.items()}
        wave = self.waves[wave_id] = _KeptWave(WaveInput(wave_id, batches, copied))
        self._begin(wave, self._processing(wave, early), WaveCrashed(wave_id, "cancelled"))

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        wave = self.waves[wave_id]
        crashed = GroupCrashed(wave_id, attempts, "cancelled")
        self._begin(wave, self._committing(wave, attempts, composed=composed), crashed)

    def cancel(self, wave_id: int) -> None:
        job = self.waves[wave_id].job
        if job is not None and not job.is_over:
            job.is_over = True
            self._events.append(job.crashed)

    def release(self, wave_id: int) -> None:
        wave = self.waves.pop(wave_id)
        if wave.job is not None:
            wave.job.is_over = True

    def next_event(self, timeout_s: float) -> Event | None:
        self._wait(timeout_s, lambda: bool(self._events))
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        for wave_id in list(self.waves):
            self.release(wave_id)

    def _begin(self, wave: _KeptWave, steps: Iterator[float], crashed: WaveCrashed | GroupCrashed) -> None:
        wave.job = Job(steps, crashed, self._executors)
        self._resume_later(wave.job, 0.0)

    def _resume_later(self, job: Job, seconds: float) -> None:
        self._timeline.after(seconds + STEP_S * self._random.random(), job, lambda: self._resume(job))

    def _resume(self, job: Job) -> None:
        if job.is_over:
            return
        try:
            seconds = next(job.steps, None)
        except CodecError as error:  # as on Spark, where whatever a job raises makes it a crash
            self._events.append(replace(job.crashed, reason=str(error)))
            seconds = None
        except TaskDiedError:
            self._events.append(replace(job.crashed, reason="a worker died again and again", kind=CrashKind.LOST))
            seconds = None
        if seconds is None:
            job.is_over = True
        elif not job.is_over:  # a step lets time pass, in which the job may be cancelled
            self._resume_later(job, seconds)

    def _over(self, wave: _KeptWave, event: Event) -> None:
        """The job tells how it ended, unless somebody has given it up."""
        if wave.job is not None and not wave.job.is_over:
            self._events.append(event)

    def _processing(self, wave: _KeptWave, early: EarlyCommit) -> Iterator[float]:
        plan, wave_id = self._plan, wave.given.wave_id
        if self._faults.strikes("wave.hangs"):
            yield FOREVER_S
        shares = shares_of(plan, wave.given, early)
        if not shares:
            for outputs in self._chain(wave):
                wave.shuffled = outputs
                yield STEP_S
        if self._faults.strikes("wave.is_lost"):
            kind = self._faults.drawn("wave.is_lost").choice([CrashKind.LOST, CrashKind.OVERDUE])
            self._over(wave, WaveCrashed(wave_id, "a worker died", kind))
            return
        if shares:
            run = ShareStage.of(self._entry, shares)
            answers = [answer for place in range(len(shares)) for answer in self._executors.run(run, place, [])]
            processed = shares_processed(plan, shares, early, answers)
        else:
            meeting = MeetingStage(self._entry, wave.given, early)
            partitions = plan.meeting_partitions(with_commit=bool(early.groups))
            records = self._executors.read(wave.shuffled or [])
            verdicts = [v for p in partitions for v in self._executors.run(meeting, p, records.get(p, []))]
            processed = wave_processed(plan, wave_id, early, verdicts)
        yield STEP_S
        self._over(wave, processed)

    def _committing(
        self, wave: _KeptWave, attempts: tuple[TransactionAttempt, ...], *, composed: bool
    ) -> Iterator[float]:
        plan = self._plan
        if self._faults.strikes("wave.hangs"):
            yield FOREVER_S
        if wave.shuffled is None:  # all was in the memory of one task
            for outputs in self._chain(wave):
                wave.shuffled = outputs
                yield STEP_S
        shuffled = wave.shuffled or []
        if self._faults.strikes("stage.is_recomputed"):
            for outputs in self._chain(wave):
                again = outputs
                yield STEP_S
            shuffled = self._executors.mixed(shuffled, again, self._faults.drawn("stage.is_recomputed"))
        if self._faults.strikes("wave.is_lost"):
            self._over(wave, GroupCrashed(wave.given.wave_id, attempts, "a worker died", CrashKind.LOST))
            return
        given = wave.given.attempts().attempts
        for index in range(plan.meeting_stage, len(plan.stages)):
            stage = CommitStage(self._entry, index, given, attempts, composed, self._reading)
            records = self._executors.read(shuffled)
            shuffled = [
                self._executors.run(stage, p, records.get(p, [])) for p in range(len(plan.stages[index].partitions))
            ]
            yield STEP_S
        reports = reports_among(packed for output in shuffled for _, packed in output)
        self._over(wave, GroupExecuted(wave.given.wave_id, attempts, tuple(reports)))

    def _chain(self, wave: _KeptWave) -> Iterator[list[Output]]:
        """Runs the processing stages one after another; gives what the tasks of each wrote."""
        plan, lean = self._plan, wave.given.without_content()
        outputs: list[Output] = []
        for index in range(plan.meeting_stage):
            stage: Stage = ProcessingStage(self._entry, lean, index) if index else EmitterStage(self._entry, wave.given)
            records = self._executors.read(outputs)
            outputs = [
                self._executors.run(stage, p, records.get(p, [])) for p in range(len(plan.stages[index].partitions))
            ]
            yield outputs
