"""Tells jobs that are being worked on from jobs that Spark has accepted and given no executor yet.

Spark says nothing of the difference: a job without executors waits, silently, for as long as nobody cancels it. Nothing
that waits so is the fault of a batch.
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
LOOK_AFTER_S = 2.0
"""How long a job may run before it is asked whether a task of it has started; most have ended by then."""
EXECUTORS_TIMEOUT_S = 300.0
"""How long a run waits for the first task of a job."""
LOG_EVERY_S = 30.0


class RunningJobs:
    """The jobs of one run that Spark has not reported on yet (driver).

    Jobs begin and end on the lanes; the run's own thread asks.

    Args:
        context: the Spark context.
        watch: over its Java process.
    """

    def __init__(self, context: SparkContext, watch: JavaWatch) -> None:
        self._context, self._watch = context, watch
        self._unstarted: dict[str, _Unstarted] = {}
        self._groups: set[str] = set()

    def __contains__(self, job_group: str) -> bool:
        return job_group in self._groups

    def began(self, job_group: str) -> None:
        """Called when a job is about to be submitted."""
        self._groups.add(job_group)
        self._unstarted[job_group] = _Unstarted(time.monotonic())

    def ended(self, job_group: str) -> None:
        """Called when it has returned."""
        self._groups.discard(job_group)
        self._unstarted.pop(job_group, None)

    def waits(self, job_group: str) -> bool:
        """Returns whether no task of a job has started, though it was submitted a while ago.

        Raises:
            EngineError: it has waited for too long, or Spark is gone.
        """
        unstarted = self._unstarted.get(job_group)
        waited_s = 0.0 if unstarted is None else time.monotonic() - unstarted.since_s
        if unstarted is None or waited_s < LOOK_AFTER_S:
            return False
        if self._watch.call(lambda: has_started(self._context, job_group)):
            self._unstarted.pop(job_group, None)
            return False
        story = f"Spark has started no task of a job for {waited_s:.0f} s"
        if waited_s > EXECUTORS_TIMEOUT_S:
            raise EngineError(
                f"{story}: the cluster gives the run no executor, or all of them are busy; look at its manager, and "
                "ask for less by spark.executor.memory and spark.executor.cores if no worker has as much"
            ).about(Trouble.SPARK)
        if waited_s >= unstarted.logged_at_s:
            unstarted.logged_at_s = waited_s + LOG_EVERY_S
            _LOG.warning("%s; waiting for executors, and no batch is blamed for it", story)
        return True


class _Unstarted:
    """A job of which no task is known to have started."""

    __slots__ = ("logged_at_s", "since_s")

    def __init__(self, since_s: float) -> None:
        self.since_s, self.logged_at_s = since_s, 0.0


def has_started(context: SparkContext, job_group: str) -> bool:
    """Returns whether a task of the running job of a group has started; True if no job of it is running."""
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(job_group)]
    running = [job for job in jobs if job is not None and job.status == "RUNNING"]
    stages = [tracker.getStageInfo(stage_id) for job in running for stage_id in job.stageIds]
    begun = (stage.numActiveTasks + stage.numCompletedTasks + stage.numFailedTasks for stage in stages if stage)
    return not running or any(begun)
