"""Tells jobs that are being worked on from jobs that wait for executors.

Spark says nothing of the difference: a job without executors, or whose slots others have, waits silently for as long
as nobody cancels it. Nothing that waits so is the fault of a batch.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.engines.spark.java_watch import JavaWatch
from state.errors import EngineError
from state.troubles import Trouble

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger("txbatch")
LOOK_AFTER_S = 1.0
"""How long a job may run before it is asked whether any of its tasks runs, and is asked again; most have ended then."""
EXECUTORS_TIMEOUT_S = 300.0
"""How long a run waits for a job to get an executor."""
LOG_AFTER_S, LOG_EVERY_S = 10.0, 30.0
"""When the log first says that a job waits, and how often."""


class RunningJobs:
    """The jobs of one run that Spark has not reported on yet (driver).

    Jobs begin and end on the lanes; the run's own thread asks.

    Args:
        context: the Spark context.
        watch: over its Java process.
    """

    def __init__(self, context: SparkContext, watch: JavaWatch) -> None:
        self._context, self._watch = context, watch
        self._jobs: dict[str, _RunningJob] = {}
        self._busy_s = 0.0

    def __contains__(self, job_group: str) -> bool:
        return job_group in self._jobs

    def began(self, job_group: str, wave_id: int) -> None:
        """Called when a job is about to be submitted for a wave."""
        self._jobs[job_group] = _RunningJob(wave_id, time.monotonic())

    def ended(self, job_group: str) -> None:
        """Called when it has returned."""
        self._jobs.pop(job_group, None)

    def waves(self) -> set[int]:
        """Returns the waves that have jobs."""
        return {job.wave_id for job in list(self._jobs.values())}

    def waiting(self) -> tuple[int, ...]:
        """Returns the waves with a job of which Spark, twice in a row, ran no task.

        Raises:
            EngineError: the run has waited for too long, or Spark is gone.
        """
        return tuple(job.wave_id for group, job in list(self._jobs.items()) if self._waits(group, job))

    def _waits(self, job_group: str, job: _RunningJob) -> bool:
        now_s = time.monotonic()
        if now_s - job.looked_s >= LOOK_AFTER_S:
            job.looked_s = now_s
            if self._watch.call(lambda: _lacks_executors(self._context, job_group)):
                job.idle_s = now_s if job.idle_s is None else job.idle_s
                self._judge(now_s - max(job.idle_s, self._busy_s), job)
            else:
                self._busy_s = now_s
                job.idle_s, job.log_at_s = None, LOG_AFTER_S
        return job.idle_s is not None and job.idle_s < job.looked_s

    def _judge(self, waited_s: float, job: _RunningJob) -> None:
        """Says that a job waits, and raises if all that time no job of the run had an executor."""
        story = f"Spark has run no task of a job for {waited_s:.0f} s"
        if waited_s > EXECUTORS_TIMEOUT_S:
            raise EngineError(
                f"{story}: the cluster gives the run no executor, or all of them are busy; look at its manager, and "
                "lower spark.executor.memory and spark.executor.cores if no worker has as much"
            ).about(Trouble.SPARK)
        if waited_s >= job.log_at_s:
            job.log_at_s = waited_s + LOG_EVERY_S
            _LOG.warning("%s; waiting for executors, which does not count against any batch", story)


@dataclass(slots=True)
class _RunningJob:
    """A job, and what was last seen of it.

    Attributes:
        wave_id: what it runs for.
        looked_s: when it was last asked about; at first, when it was about to be submitted.
        idle_s: the first of the last looks at which it ran no task, None if it ran one at the last.
        log_at_s: how long it must have waited for the log to say so.
    """

    wave_id: int
    looked_s: float
    idle_s: float | None = None
    log_at_s: float = LOG_AFTER_S


def _lacks_executors(context: SparkContext, job_group: str) -> bool:
    """Returns whether Spark has a job of the group of which no task runs."""
    tracker = context.statusTracker()
    job_ids = set(tracker.getJobIdsForGroup(job_group)) & set(tracker.getActiveJobsIds())
    jobs = [job for job in map(tracker.getJobInfo, job_ids) if job is not None]
    stages = [tracker.getStageInfo(stage_id) for job in jobs for stage_id in job.stageIds]
    return bool(jobs) and not any(stage.numActiveTasks for stage in stages if stage)
