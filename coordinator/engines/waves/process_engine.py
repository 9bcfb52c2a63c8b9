"""The engine without Spark: a wave's jobs run on the run's own thread, while it waits for events.

What a wave does, checks and commits is what it does on Spark, so a run may continue on either. There is one process and
one core, and nothing comes between a bolt and the run: a bolt that kills its process ends the run. One that does not
return is ended at the message timeout, if the run is on the main thread and the bolt lets signals through.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_entry import StageEntry
from coordinator.engines.waves.task_stages import Output, TaskRunner, TaskStages
from coordinator.engines.waves.wave import Wave
from coordinator.engines.waves.wave_engine import Run, WaveEngine
from coordinator.engines.waves.worker_traceback import TEXT_LIMIT, CrashStory, WorkerTraceback, overdue_story
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import Event
from state.attempt import Attempts
from state.errors import EngineError


class KeptStages(TaskStages):
    """Stages without shares: what these save, a shuffle, costs nothing here, and a commit phase finds all frames."""

    has_task_partitions = False


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """A plan that need not be shipped."""

    value: Plan


class ProcessEngine(WaveEngine):
    """Runs waves in this process, all tasks of a stage one after the other.

    Args:
        plan: what to run.
        redis_url, nonce, message_timeout_s: see `WaveEngine`.
    """

    overlaps = False
    queues = False

    def __init__(self, plan: Plan, redis_url: str, nonce: str, message_timeout_s: float | None = None) -> None:
        super().__init__(plan.in_slots(1), redis_url, nonce, message_timeout_s)
        self._entry: StageEntry[Plan] = StageEntry(HeldPlan(self._plan))
        self._jobs: deque[Callable[[], Event | EngineError]] = deque()

    def _wave(self, given: WaveInput) -> Wave[list[Output]]:
        return Wave(self._plan, KeptStages(self._plan, TaskRunner()), given, self._entry, self._reading)

    def _submit(self, phase: str, wave_id: int, attempts: Attempts, run: Run) -> None:
        self._jobs.append(partial(run, phase, lambda: None))

    def _crashed(self, name: str, error: BaseException) -> CrashStory:
        found = WorkerTraceback("".join(traceback.format_exception(error)).splitlines())  # as a worker reports it
        cause = found.cause()
        return overdue_story(cause) or found.story_of_ours() or CrashStory(cause[:TEXT_LIMIT])

    def cancel(self, wave_id: int) -> None:
        """What runs for a wave has ended before anybody can cancel it."""

    def release(self, wave_id: int) -> None:
        """Forgets a wave."""
        self._waves.pop(wave_id, None)

    def next_event(self, timeout_s: float) -> Event | None:
        """Runs the next job and returns its event; without one, see `WaveEngine.next_event`."""
        if self._jobs:
            self._events.put(self._jobs.popleft()())
        return super().next_event(timeout_s)

    def close(self) -> None:
        """Drops what has not run."""
        self._jobs.clear()
        self._waves.clear()
        self._private.cleanup()
