"""Distinguishes jobs that are being worked on from jobs that wait for executors.

Spark does not report the difference: a job without executors, or whose slots are taken by others, waits silently until
somebody cancels it. Such a wait never counts against a batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from coordinator.engines.spark.crash_story import crash_story
from coordinator.engines.spark.java.java_watch import JavaWatch
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S
from coordinator.watching.failure_cause import CrashKind
from state.errors import EngineError
from state.troubles import Trouble

if TYPE_CHECKING:
    from pyspark import SparkContext, SparkJobInfo, SparkStageInfo, StatusTracker

_LOG = logging.getLogger("txbatch.spark")
LOOK_AFTER_S = 1.0
"""How long a job may run before Spark is asked whether its tasks run, and is asked again; most end before that."""
LOOKS_A_TIMEOUT = 4
"""Spark is asked at least this often in a message timeout."""
LOG_AFTER_S, LOG_EVERY_S = 10.0, 30.0
"""How long a job has waited when the log first says so, and how often it says so again."""
TASKS_MAX = 500
"""How many tasks of each stage Spark keeps reports of; see `OUR_SETTINGS`."""
FIRST_WAVE = 0
"""Stands for the job that runs before the first wave; whatever is submitted meanwhile waits for it."""


class JobState(Enum):
    """The state of a job, as one look shows it."""

    ABSENT = "absent"
    """Spark does not have the job yet, or no longer."""
    BUSY = "busy"
    """One of its tasks runs."""
    BETWEEN = "between"
    """None of its tasks runs, but some have."""
    UNBEGUN = "unbegun"
    """None of its tasks has run."""


class RunningJobs:
    """The jobs of one run that have not returned yet (driver).

    Jobs begin and end on the lanes; the run's own thread asks.

    Args:
        context: the Spark context.
        watch: the watch over Spark's Java process.
        supply: returns, in words, the executors there are and those asked for.
        executors_timeout_s: how long the run waits for an executor.
        message_timeout_s: how long a phase may take from its first task on; None for ever.

    Attributes:
        story: what the run waits for, in one line; "" while one of its jobs is worked on.
    """

    def __init__(
        self,
        context: SparkContext,
        watch: JavaWatch,
        supply: Callable[[], str],
        *,
        executors_timeout_s: float = EXECUTORS_TIMEOUT_S,
        message_timeout_s: float | None = None,
    ) -> None:
        self._context, self._watch, self._supply = context, watch, supply
        self._executors_timeout_s = executors_timeout_s
        self._look_after_s = min(LOOK_AFTER_S, (message_timeout_s or LOOKS_A_TIMEOUT * LOOK_AFTER_S) / LOOKS_A_TIMEOUT)
        self._jobs: dict[str, _RunningJob] = {}
        self._busy_s = 0.0
        self.story = ""

    def __contains__(self, job_group: str) -> bool:
        return job_group in self._jobs

    def began(self, job_group: str, wave_id: int, *, behind: str = "") -> None:
        """Notes that a job of a wave was given to its lane, where it waits until the job it is `behind` has ended."""
        self._jobs[job_group] = _RunningJob(wave_id, time.monotonic(), behind)

    def ended(self, job_group: str) -> None:
        """Notes that a job has returned: executors are at work, unless it waited until its end."""
        job = self._jobs.pop(job_group, None)
        if job is not None and not job.waits:
            self._busy_s, self.story = time.monotonic(), ""

    def waves(self) -> set[int]:
        """Returns the waves that have jobs."""
        return {job.wave_id for job in list(self._jobs.values())}

    def waiting(self) -> tuple[int, ...]:
        """Returns the waves with a job that has not run a task yet, or that ran none at two looks in a row.

        Raises:
            EngineError: the run has waited for too long, or Spark is gone.
        """
        jobs = list(self._jobs.items())
        waiting = tuple(job.wave_id for group, job in jobs if self._waits(group, job))
        if not waiting:
            self.story = ""
        return tuple(sorted(self.waves())) if any(job.wave_id == FIRST_WAVE for _, job in jobs) else waiting

    def _waits(self, job_group: str, job: _RunningJob) -> bool:
        now_s = time.monotonic()
        if job.behind in self._jobs:
            job.looked_s = now_s
        elif now_s - job.looked_s >= self._look_after_s:
            job.looked_s = now_s
            look = self._watch.call(lambda: _look_at(self._context, job_group))
            if look is JobState.BUSY:
                self._busy_s, self.story = now_s, ""
            if look in (JobState.BUSY, JobState.ABSENT):
                job.idle_s, job.log_at_s = None, LOG_AFTER_S
            else:
                job.waits = job.idle_s is not None or look is JobState.UNBEGUN
                job.idle_s = now_s if job.idle_s is None else job.idle_s
                self._judge(now_s - max(job.idle_s, self._busy_s), job)
        return job.idle_s is not None and job.waits

    def _judge(self, waited_s: float, job: _RunningJob) -> None:
        """Reports that a job waits; raises an error if it waited too long while no job of the run had an executor."""
        supply = self._watch.call(self._supply)
        is_alone = self._busy_s < (job.idle_s or 0.0)
        has_waited = waited_s > 0  # since an earlier look
        self.story = f"waiting for executors: {supply}" if job.waits and is_alone and has_waited else ""
        if waited_s > self._executors_timeout_s:
            raise EngineError(
                f"Spark has run no task of a job for {waited_s:.0f} s, executors: {supply}; the cluster gives the run "
                "no executor, or all of them are busy; look at its manager, lower spark.executor.memory and "
                "spark.executor.cores if no worker has as much, or wait longer by --executors-timeout"
            ).about(Trouble.SPARK)
        if waited_s >= job.log_at_s:
            job.log_at_s = waited_s + LOG_EVERY_S
            _LOG.warning(
                "Spark has run no task of a job for %.0f s; waiting for executors, which does not count against any "
                "batch: %s",
                waited_s,
                supply,
            )


@dataclass(slots=True)
class _RunningJob:
    """A job, and its state at the last look.

    Attributes:
        wave_id: the wave it runs for.
        looked_s: when it was last looked at; at first, when it was about to be submitted.
        behind: the job group that it is queued behind, if that has not ended.
        idle_s: since which look it has run no task; None if it ran one at the last look.
        waits: whether it waits for executors, and is not just between two stages.
        log_at_s: how long it must have waited before the log says so.
    """

    wave_id: int
    looked_s: float
    behind: str = ""
    idle_s: float | None = None
    waits: bool = False
    log_at_s: float = LOG_AFTER_S


def _running_tasks(context: SparkContext, stage: SparkStageInfo) -> int:
    """Asks the scheduler, because Spark's figures for a stage are up to a heartbeat old: ten seconds, if tasks hang."""
    scheduler = context._jsc.sc().taskScheduler()  # noqa: SLF001 - there is no public question
    found = scheduler.taskSetManagerForAttempt(stage.stageId, stage.currentAttemptId)
    return int(found.get().runningTasks()) if found.isDefined() else 0


def overdue_story(context: SparkContext, job_group: str) -> CrashStory | None:
    """Returns where the group's last job hung, if the alarm rang for one of its tasks (driver, after a crash).

    A cluster tries such a task again, so the job itself only knows that it was cancelled meanwhile.
    """
    try:
        store = context._jsc.sc().statusStore()  # noqa: SLF001 - there is no public question
        tracker = context.statusTracker()
        job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(job_group), default=-1))
        for stage in () if job is None else _stages_of(tracker, [job]):
            tasks = store.taskList(stage.stageId, stage.currentAttemptId, TASKS_MAX)
            for said in (tasks.apply(place).errorMessage() for place in range(tasks.size())):
                if said.isDefined() and (story := crash_story(RuntimeError(said.get()))).kind is CrashKind.OVERDUE:
                    return story
    except Exception as error:  # noqa: BLE001 - whatever Spark raises, the crash has a story of its own
        _LOG.debug("the tasks of a crashed job are unknown: %s", error)
    return None


def _stages_of(tracker: StatusTracker, jobs: Iterable[SparkJobInfo]) -> list[SparkStageInfo]:
    return [stage for job in jobs for stage in map(tracker.getStageInfo, job.stageIds) if stage is not None]


def _look_at(context: SparkContext, job_group: str) -> JobState:
    """Looks at the group's job, if Spark has one."""
    tracker = context.statusTracker()
    job_ids = set(tracker.getJobIdsForGroup(job_group)) & set(tracker.getActiveJobsIds())
    jobs = [job for job in map(tracker.getJobInfo, job_ids) if job is not None]
    stages = _stages_of(tracker, jobs)
    if not jobs:
        return JobState.ABSENT
    if any(stage.numActiveTasks or _running_tasks(context, stage) for stage in stages):
        return JobState.BUSY
    has_begun = any(stage.numCompletedTasks or stage.numFailedTasks for stage in stages)
    return JobState.BETWEEN if has_begun else JobState.UNBEGUN
