"""Runs Spark's stages in virtual time, while tasks are retried, run twice, recomputed and lost, and frames altered.

A job is a generator that yields how long its next step takes; a job that is cancelled or released meanwhile is never
resumed. `executors` decides what happens to its tasks and frames.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar

from coordinator.engines.waves.stage import CommitStage, MeetingStage, Reading, WaveInput
from coordinator.engines.waves.stage_context import StageContext, StageFunction
from coordinator.engines.waves.task_stages import Output, TaskStages
from coordinator.engines.waves.wave import Steps, Wave
from coordinator.spouts.batch import Batch
from coordinator.testing.simulated.executors import Executors, TaskDiedError
from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.timeline import Timeline
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.attempt import Attempts
from state.codec import CodecError

STEP_S = 0.02
FOREVER_S = 1e6
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Job:
    """A job of a wave: its processing phase, or the commit phase of a group."""

    steps: Iterator[float]
    crashed: WaveCrashed | GroupCrashed
    executors: Executors
    is_over: bool = False

    def reach(self, point: str) -> None:
        """Called at a named point of the code, where the worker of a task may be killed."""
        self.executors.reach(point)


class WaveLostError(Exception):
    """The job of a wave was given up as a whole."""

    def __init__(self, kind: CrashKind) -> None:
        super().__init__(kind)
        self.kind = kind


class SimStages(TaskStages):
    """The stages of one wave, which may be lost, or run again after their output was read."""

    def __init__(self, plan: Plan, executors: Executors) -> None:
        super().__init__(plan, executors)
        self._executors, self._ran = executors, list[tuple[StageFunction, int]]()
        self._faults = executors.faults

    def seeded(self, stage: StageFunction, count: int) -> list[Output]:
        self._may_be_lost()
        return super().seeded(stage, count)

    def run(self, rows: list[Output], stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> list[Output]:
        if isinstance(stage, MeetingStage):
            self._may_be_lost()
        elif not isinstance(stage, CommitStage):
            self._ran.append((stage, index))
        elif index == self._plan.meeting_stage:
            rows = self._recomputed(rows)
            if self._faults.strikes("wave.is_lost"):
                raise WaveLostError(CrashKind.LOST)
        return super().run(rows, stage, index, partitions)

    def _may_be_lost(self) -> None:
        if self._faults.strikes("wave.is_lost"):
            raise WaveLostError(self._faults.drawn("wave.is_lost").choice([CrashKind.LOST, CrashKind.OVERDUE]))

    def _recomputed(self, rows: list[Output]) -> list[Output]:
        if not self._faults.strikes("stage.is_recomputed"):
            return rows
        again: list[Output] = []
        for stage, index in self._ran[-self._plan.meeting_stage :]:
            again = super().run(again, stage, index)
        return self._executors.mixed(rows, again, self._faults.drawn("stage.is_recomputed"))


@dataclass(slots=True)
class _KeptWave:
    """A wave that executors keep until it is released, and the job that runs for it."""

    wave: Wave[list[Output]]
    job: Job | None = None


class SimEngine:
    """Runs waves and groups.

    Args:
        reading: opens the readers by which committers read state.
        wait: the driver's wait, for `next_event`.

    Attributes:
        waves: wave id -> the wave that is kept.
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
        self._entry: StageContext[Plan] = StageContext(shipped)
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
        stages, given = SimStages(self._plan, self._executors), WaveInput(wave_id, batches, copied)
        kept = _KeptWave(Wave(self._plan, stages, given, self._entry, self._reading))
        self.waves[wave_id] = kept
        self._begin(kept, self._processing(kept, early), WaveCrashed(wave_id, "cancelled"))

    def commit(self, wave_id: int, attempts: Attempts, *, composed: bool) -> None:
        wave = self.waves[wave_id]
        crashed = GroupCrashed(wave_id, attempts, "cancelled")
        self._begin(wave, self._committing(wave, wave_id, attempts, composed=composed), crashed)

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
        except CodecError as error:  # as on Spark, any exception of a job is a crash
            self._events.append(replace(job.crashed, reason=str(error)))
            seconds = None
        except WaveLostError as error:
            self._events.append(replace(job.crashed, reason="a worker died", kind=error.kind))
            seconds = None
        except TaskDiedError:
            self._events.append(replace(job.crashed, reason="a worker died again and again", kind=CrashKind.LOST))
            seconds = None
        if seconds is None:
            job.is_over = True
        elif not job.is_over:  # a step lets time pass, in which the job may be cancelled
            self._resume_later(job, seconds)

    def _over(self, wave: _KeptWave, event: Event) -> None:
        """Delivers the event of a job that has ended, unless the job was cancelled."""
        if wave.job is not None and not wave.job.is_over:
            self._events.append(event)

    def _processing(self, kept: _KeptWave, early: EarlyCommit) -> Iterator[float]:
        if self._faults.strikes("wave.hangs"):
            yield FOREVER_S
        processed = yield from _timed(kept.wave.process(early))
        self._over(kept, processed)

    def _committing(self, kept: _KeptWave, wave_id: int, attempts: Attempts, *, composed: bool) -> Iterator[float]:
        if self._faults.strikes("wave.hangs"):
            yield FOREVER_S
        reports = yield from _timed(kept.wave.commit(attempts, composed=composed))
        self._over(kept, GroupExecuted(wave_id, attempts, tuple(reports)))


def _timed(steps: Steps[T]) -> Generator[float, None, T]:
    """Yields how long each step takes; returns the result of the steps."""
    while True:  # bounded by the stages of the plan
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        yield STEP_S
