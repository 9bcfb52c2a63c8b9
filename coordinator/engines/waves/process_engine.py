"""The engine without Spark: it runs a wave's jobs on the run's own thread, when that waits for events.

A wave does, checks and commits the same as on Spark, so the next run may use either engine. There is one process and
one core, and nothing separates a bolt from the run: a bolt that kills its process ends the run. One that does not
return is interrupted at the message timeout, if the run is on the main thread and the bolt lets signals through.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_context import StageContext
from coordinator.engines.waves.task_stages import Output, TaskRunner, TaskStages
from coordinator.engines.waves.wave import Wave
from coordinator.engines.waves.wave_engine import Run, WaveEngine
from coordinator.engines.waves.worker_traceback import TEXT_LIMIT, CrashStory, WorkerTraceback, overdue_story
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import Event
from state.attempt import Attempts
from state.errors import EngineError


class InProcessStages(TaskStages):
    """Stages without shares: a shuffle, which those save, costs nothing here, and a commit phase finds all frames."""

    has_task_partitions = False


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """A plan that is used where it is, and never shipped."""

    value: Plan


class ProcessEngine(WaveEngine):
    """Runs waves in this process, all tasks of a stage one after the other.

    Args:
        plan: the plan to run.
        redis_url, nonce, message_timeout_s: see `WaveEngine`.
    """

    overlaps = False
    queues = False

    def __init__(self, plan: Plan, redis_url: str, nonce: str, message_timeout_s: float | None = None) -> None:
        super().__init__(plan.in_slots(1), redis_url, nonce, message_timeout_s)
        self._entry: StageContext[Plan] = StageContext(LocalPlan(self._plan))
        self._jobs: deque[Callable[[], Event | EngineError]] = deque()

    def _wave(self, given: WaveInput) -> Wave[list[Output]]:
        return Wave(self._plan, InProcessStages(self._plan, TaskRunner()), given, self._entry, self._reading)

    def _submit(self, phase: str, wave_id: int, attempts: Attempts, run: Run) -> None:
        self._jobs.append(partial(run, phase, lambda: None))

    def _crashed(self, name: str, error: BaseException) -> CrashStory:
        found = WorkerTraceback("".join(traceback.format_exception(error)).splitlines())  # as a worker reports it
        cause = found.cause()
        return overdue_story(cause) or found.story_of_ours() or CrashStory(cause[:TEXT_LIMIT])

    def cancel(self, wave_id: int) -> None:
        """Does nothing: a wave's job has ended before anybody can cancel it."""

    def release(self, wave_id: int) -> None:
        """Forgets a wave."""
        self._waves.pop(wave_id, None)

    def next_event(self, timeout_s: float) -> Event | None:
        """Runs the next job, if there is one, and returns its event; otherwise see `WaveEngine.next_event`."""
        if self._jobs:
            self._events.put(self._jobs.popleft()())
        return super().next_event(timeout_s)

    def close(self) -> None:
        """Drops the jobs that have not run."""
        self._jobs.clear()
        self._waves.clear()
        self._private.cleanup()
