"""Tells jobs that are being worked on from jobs that wait for executors.

Spark says nothing of the difference: a job without executors, or whose slots others have, waits silently for as long
as nobody cancels it. Nothing that waits so is the fault of a batch.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from coordinator.spark.java.java_watch import JavaWatch
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

    def __contains__(self, job_group: str) -> bool:
        return job_group in self._jobs

    def began(self, job_group: str) -> None:
        """Called when a job is about to be submitted."""
        self._jobs[job_group] = _RunningJob(time.monotonic())

    def ended(self, job_group: str) -> None:
        """Called when it has returned."""
        self._jobs.pop(job_group, None)

    def waits(self, job_group: str) -> bool:
        """Returns whether Spark has a job and has run none of its tasks for a while.

        Raises:
            EngineError: it has waited for too long, or Spark is gone.
        """
        job = self._jobs.get(job_group)
        waited_s = 0.0 if job is None else time.monotonic() - job.busy_s
        if job is None or waited_s < LOOK_AFTER_S:
            return False
        if not self._watch.call(lambda: _lacks_executors(self._context, job_group)):
            job.busy_s, job.log_at_s = time.monotonic(), LOG_AFTER_S
            return False
        story = f"Spark has run no task of a job for {waited_s:.0f} s"
        if waited_s > EXECUTORS_TIMEOUT_S:
            raise EngineError(
                f"{story}: the cluster gives the run no executor, or all of them are busy; look at its manager, and "
                "lower spark.executor.memory and spark.executor.cores if no worker has as much"
            ).about(Trouble.SPARK)
        if waited_s >= job.log_at_s:
            job.log_at_s = waited_s + LOG_EVERY_S
            _LOG.warning("%s; waiting for executors, which does not count against any batch", story)
        return True


class _RunningJob:
    """A job, and when it was last known not to wait."""

    __slots__ = ("busy_s", "log_at_s")

    def __init__(self, busy_s: float) -> None:
        self.busy_s, self.log_at_s = busy_s, LOG_AFTER_S


def _lacks_executors(context: SparkContext, job_group: str) -> bool:
    """Returns whether Spark has a job of the group of which no task runs."""
    tracker = context.statusTracker()
    job_ids = set(tracker.getJobIdsForGroup(job_group)) & set(tracker.getActiveJobsIds())
    jobs = [job for job in map(tracker.getJobInfo, job_ids) if job is not None]
    stages = [tracker.getStageInfo(stage_id) for job in jobs for stage_id in job.stageIds]
    return bool(jobs) and not any(stage.numActiveTasks for stage in stages if stage)
