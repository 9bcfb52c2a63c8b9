"""The engine of plain topologies on Spark: one wave at a time, on its own lane."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, wait
from functools import partial

from coordinated_bolt.transport.frames import frame_target
from coordinator.engines.spark.cluster.cluster_watch import ClusterWatch
from coordinator.engines.spark.cluster.probe import look_at_executors
from coordinator.engines.spark.cluster.running_jobs import FIRST_WAVE, LOOK_AFTER_S, RunningJobs, overdue_story
from coordinator.engines.spark.crash_story import crash_story
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source, settle_thread
from coordinator.engines.spark.lane import Lane
from coordinator.engines.spark.session import SparkLease, is_in_process
from coordinator.engines.waves.alarm import Deadline
from coordinator.engines.waves.stage_context import Addressed, StageContext
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.plain.plain_engine import PlainWave, WaveDrained
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.spark.plain_stage import BoltStage, SpoutEnd, wave_drained
from coordinator.transactional.engine import WaveCrashed
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S, HANG_REPORT_S
from coordinator.watching.failure_cause import CrashKind
from state.errors import EngineError

_LOG = logging.getLogger("txbatch.spark")
CANCEL_MAX_S = 60.0
"""How long a cancelled wave may take to end; Spark kills its workers after two seconds."""


class SparkPlainEngine:
    """Runs waves as Spark jobs.

    Args:
        lease: a Spark context, which stays running after `close`, and the watch over its Java process.
        plan: the topology's plan.
        code: the archive that tasks import from; see `ship_code`.
        wave_timeout_s: time limit of a wave: user code that has not returned is ended a little before it, or if that
            fails, the wave is ended a little after it; None for no limit.
        executors_timeout_s: how long the run waits for an executor.
    """

    def __init__(
        self,
        lease: SparkLease,
        plan: PlainPlan,
        *,
        code: str = "",
        wave_timeout_s: float | None = None,
        executors_timeout_s: float = EXECUTORS_TIMEOUT_S,
    ) -> None:
        self._context, self._watch = context, watch = lease.context, lease.watch
        self._plan, self._shipped_plan = plan, watch.call(lambda: context.broadcast(plan))
        self._wave_timeout_s = wave_timeout_s
        self._frame_jobs = FrameJobs(context, code)
        self._job_group = f"txbatch-{id(self)}-plain"
        self._lane = Lane("txbatch-plain")
        self._lane.submit(partial(settle_thread, context, "txbatch-processing"))
        self._errors: list[EngineError] = []
        self._cluster = ClusterWatch(context, self._errors.append)
        self._jobs = RunningJobs(
            context,
            watch,
            self._cluster.supply,
            executors_timeout_s=executors_timeout_s,
            message_timeout_s=wave_timeout_s,
        )
        self._wave_number, self._began_s = 0, 0.0
        self._running = Future[WaveDrained]()
        self._running.cancel()  # nothing runs yet
        if not is_in_process(context.master or ""):
            first_group = f"{self._job_group}-executors"
            self._jobs.began(first_group, FIRST_WAVE)
            look = partial(look_at_executors, context, code, self._jobs, first_group, self._errors.append)
            self._lane.submit(look)

    def begin(self, wave: PlainWave) -> None:
        """Hands a wave to the lane, so that the calling thread stays free for signals."""
        self._wave_number, self._began_s = wave.wave_id.number, time.monotonic()
        self._jobs.began(self._job_group, self._wave_number)
        self._running = self._lane.submit(partial(self._run, wave))

    def has_ended(self) -> bool:
        return self._running.done()

    def end(self) -> WaveDrained | WaveCrashed:
        """Waits for the end of the wave under way.

        Raises:
            EngineError: Spark is gone, gives no executors, or does not end a wave that was cancelled.
        """
        try:
            if self._exceeds_its_time():
                return self._cancelled()
            return self._watch.wait(self._running)
        except EngineError:
            raise
        except Exception as error:  # noqa: BLE001 - after any error of Spark, the wave's messages have failed
            _LOG.debug("a wave crashed:\n%s", error)
            story = crash_story(error)
            return WaveCrashed(self._wave_number, story.reason, story.kind)

    def _exceeds_its_time(self) -> bool:
        """Waits until the wave has ended or its time is up; time without executors does not count."""
        timeout_s = self._wave_timeout_s
        while not wait([self._running], LOOK_AFTER_S).done:
            self._watch.check()
            if self._errors:
                raise self._errors[0]
            if self._jobs.waiting():
                self._began_s = time.monotonic()
            elif timeout_s is not None and time.monotonic() - self._began_s > timeout_s + HANG_REPORT_S:
                return not self._running.done()
        return False

    def _cancelled(self) -> WaveCrashed:
        """Cancels a wave and waits for its end, so that the next wave has the executors to itself."""
        self._watch.call(partial(self._context.cancelJobGroup, self._job_group))
        try:
            self._watch.wait(self._running, CANCEL_MAX_S)
        except EngineError:
            raise
        except Exception as error:
            if not self._running.done():
                raise EngineError(
                    f"Spark did not end a cancelled wave within {CANCEL_MAX_S:g} s; look at its executors"
                ) from error
        late = CrashStory(f"it took longer than {self._wave_timeout_s:g} s and was cancelled", CrashKind.OVERDUE)
        story = self._watch.call(partial(overdue_story, self._context, self._job_group)) or late
        return WaveCrashed(self._wave_number, story.reason, story.kind)

    def close(self) -> None:
        """Cancels the wave under way, waits for its end, and deletes the shipped plan."""
        try:
            if not self._running.done():
                self._watch.call(partial(self._context.cancelJobGroup, self._job_group))
            self._cluster.close()
            self._lane.close(CANCEL_MAX_S if self._watch.lost is None else 0)
            self._watch.call(self._shipped_plan.destroy)
        except EngineError as error:  # nothing is left to clean up
            _LOG.debug("nothing was cleaned up: %s", error)

    def _run(self, wave: PlainWave) -> WaveDrained:
        description = f"{self._plan.topology_id}: wave {wave.wave_id.number}"
        self._context.setJobGroup(self._job_group, description, interruptOnCancel=True)
        try:
            return self._drained(wave)
        finally:
            self._jobs.ended(self._job_group)

    def _drained(self, wave: PlainWave) -> WaveDrained:
        """Runs the wave's job, with a stage for each level of bolts, and leaves no shuffle files."""
        plan, jobs, timeout_s = self._plan, self._frame_jobs, self._wave_timeout_s
        deadline = None if timeout_s is None else Deadline(time.time(), timeout_s, "a wave's limit")
        if not plan.stages:
            return wave_drained((), wave)
        entry = StageContext(self._shipped_plan, deadline=deadline)
        parts = emitted_parts(plan, wave)  # already in the partitions of stage 0, so nothing is shuffled for it
        emitted = Source.of(self._context.parallelize(parts, len(parts)))
        frames = Frames(emitted, (SpoutEnd(BoltStage(entry, wave.wave_id, 0)),))
        last_shuffled: Source | None = None
        for index in range(1, len(plan.stages)):
            last_shuffled = jobs.shuffled(frames, len(plan.stages[index].tasks))
            frames = Frames(last_shuffled, (BoltStage(entry, wave.wave_id, index),))
        try:
            return wave_drained(jobs.run(frames, range(len(plan.stages[-1].tasks))), wave)
        finally:
            if last_shuffled is not None:
                last_shuffled.delete_shuffle_files()


def emitted_parts(plan: PlainPlan, wave: PlainWave) -> list[list[Addressed]]:
    """Returns the frames of a wave by partition of stage 0 (driver)."""
    routes = plan.chain.routes_into(0)
    parts: list[list[Addressed]] = [[] for _ in (plan.stages[0].tasks if plan.stages else ())]
    for packed in wave.frames:
        partition = routes[frame_target(packed)]
        parts[partition].append((partition, packed))
    return parts
