"""The engine on Spark, with two lanes, one for processing and one for commits, each in its own FAIR pool."""

from __future__ import annotations

import logging
from collections import deque
from functools import partial

from coordinator.engines.spark.cluster.cluster_watch import ClusterWatch
from coordinator.engines.spark.cluster.probe import look_at_executors
from coordinator.engines.spark.cluster.running_jobs import FIRST_WAVE, RunningJobs, overdue_story
from coordinator.engines.spark.crash_story import blamed, crash_story
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, does_nothing, settle_thread
from coordinator.engines.spark.lane import Lane
from coordinator.engines.spark.session import SparkLease, is_fair, is_in_process
from coordinator.engines.spark.shuffled_stages import Intake, ShuffledStages, deploy
from coordinator.engines.waves.stage import WaveInput
from coordinator.engines.waves.stage_context import FrameFault, StageContext
from coordinator.engines.waves.wave import Wave
from coordinator.engines.waves.wave_engine import COMMIT, PROCESSING, Run, WaveEngine
from coordinator.engines.waves.worker_traceback import CrashStory
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import (
    ClusterNoted,
    Event,
    PhaseWaits,
)
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S
from state.attempt import Attempts
from state.errors import EngineError

_LOG = logging.getLogger("txbatch.spark")
FIRST_LOOK = "executors"
"""Stands for a phase: the job that runs before the first wave and looks at executors."""
LANE_CLOSE_S = 30.0
"""How long a cancelled job may take to end; Spark kills its workers after two seconds."""


class SparkEngine(WaveEngine):
    """Runs waves as jobs of a Spark context.

    Args:
        lease: the Spark context, which keeps running after `close`, and the watch over its Java process.
        plan: the plan to run.
        redis_url, nonce, message_timeout_s: see `WaveEngine`.
        executors_timeout_s: how long the run waits for an executor.
        code: the name of the archive that tasks import from; see `ship_code`.
        intake: feeds stage 0; None if the spout's tasks read by themselves.

    Attributes:
        frame_fault: fault point ``frames.read``; tests set it before the first wave.
    """

    def __init__(
        self,
        lease: SparkLease,
        plan: Plan,
        redis_url: str,
        nonce: str,
        message_timeout_s: float | None = None,
        *,
        executors_timeout_s: float = EXECUTORS_TIMEOUT_S,
        code: str = "",
        intake: Intake | None = None,
    ) -> None:
        super().__init__(plan, redis_url, nonce, message_timeout_s)
        self._context, self._watch = context, watch = lease.context, lease.watch
        self.frame_fault: FrameFault | None = None
        self._deployment = watch.call(lambda: deploy(FrameJobs(context, code), plan, self._reading, intake))
        self._cluster = ClusterWatch(context, self._events.put)
        self._running = RunningJobs(
            context,
            watch,
            self._cluster.supply,
            executors_timeout_s=executors_timeout_s,
            message_timeout_s=message_timeout_s,
        )
        self._noted = ClusterNoted()
        self._processing_lanes = deque(Lane(f"txbatch-processing-{number}") for number in (1, 2))
        self._commit_lane = Lane("txbatch-commit")
        for lane in self._processing_lanes:
            lane.submit(partial(settle_thread, context, "txbatch-processing"))
        self._commit_lane.submit(partial(settle_thread, context, "txbatch-commit"))
        self._last_processing = ""
        watch.tell(self._events.put)
        self.overlaps = self.queues = watch.call(lambda: is_fair(context.getConf().get))
        if not self.overlaps:
            _LOG.info("this Spark context schedules FIFO: one wave at a time; set spark.scheduler.mode=FAIR for two")
        if not is_in_process(context.master or ""):
            job_group = self._job_group(FIRST_LOOK, FIRST_WAVE)
            self._running.began(job_group, FIRST_WAVE)
            look = partial(look_at_executors, context, code, self._running, job_group, self._events.put)
            self._processing_lanes[0].submit(look)

    def _wave(self, given: WaveInput) -> Wave[Frames]:
        deployed = self._deployment
        entry = StageContext(deployed.shipped_plan, self.frame_fault)
        return Wave(self._plan, ShuffledStages(deployed), given, entry, deployed.reading)

    def _submit(self, phase: str, wave_id: int, attempts: Attempts, run: Run) -> None:
        first, last = attempts[0].txid, attempts[-1].txid
        txids = f"txid {first}" if first == last else f"txids {first}..{last}"
        described = f"{self._plan.topology_id}: wave {wave_id}, {txids}, {phase}"  # in Spark's UI
        job_group, behind = self._job_group(phase, wave_id), ""
        lane = self._commit_lane
        if phase == PROCESSING:
            lane, behind, self._last_processing = self._processing_lanes[0], self._last_processing, job_group
            self._processing_lanes.rotate()

        def job() -> None:
            begin = partial(self._context.setJobGroup, job_group, described, interruptOnCancel=True)
            event = run(job_group, begin)
            self._running.ended(job_group)
            self._events.put(event)

        self._running.began(job_group, wave_id, behind=behind)
        lane.submit(job)

    def _is_queued(self) -> bool:
        return self._last_processing in self._running

    def _crashed(self, name: str, error: BaseException) -> CrashStory:
        self._watch.check()
        jobs = self._deployment.jobs
        story = overdue_story(self._context, name) or crash_story(error)
        return blamed(
            story,
            lambda: jobs.run(Frames(jobs.seeds(1), (does_nothing,)), [0]),
            has_processed=self._has_processed,
        )

    def cancel(self, wave_id: int) -> None:
        """Cancels the jobs of a wave."""
        for phase in (PROCESSING, COMMIT, FIRST_LOOK):
            job_group = self._job_group(phase, wave_id)
            if job_group in self._running:  # Spark warns of groups it does not know
                self._watch.call(partial(self._context.cancelJobGroup, job_group))

    def release(self, wave_id: int) -> None:
        """Deletes the shuffle files of a wave after the jobs that may still use them."""
        self._processing_lanes[0].submit(partial(self._release, wave_id))

    def next_event(self, timeout_s: float) -> Event | None:
        """Returns the next event, or None after the time.

        Raises:
            EngineError: Spark is gone, or gives no executors.
        """
        noted = ClusterNoted(self._running.story or self._cluster.story, bool(self._running.story))
        if noted != self._noted:
            self._noted = noted
            return noted
        event = super().next_event(timeout_s)
        if event is None:
            waiting = self._running.waiting()  # waves with a phase that runs no task
            return PhaseWaits(waiting) if waiting else None
        return event

    def close(self) -> None:
        """Cancels the running jobs, waits for the lanes, and deletes the shipped plan and the shuffle files.

        If Spark is gone, there is nothing to do.
        """
        try:
            for wave_id in self._running.waves():
                self.cancel(wave_id)
            for lane in (self._commit_lane, *self._processing_lanes):
                lane.close(LANE_CLOSE_S if self._watch.lost is None else 0)
            self._watch.call(self._tidy_up)
        except EngineError as error:
            _LOG.debug("nothing was cleaned up: %s", error)
        finally:
            self._cluster.close()
            self._private.cleanup()

    def _tidy_up(self) -> None:
        for wave_id in list(self._waves):
            self._release(wave_id)
        self._deployment.shipped_plan.destroy()

    def _release(self, wave_id: int) -> None:
        wave = self._waves.pop(wave_id, None)
        if wave is not None:
            try:
                wave.release()
            except Exception as error:  # noqa: BLE001 - a context that is gone has no files left
                _LOG.debug("wave %d could not be cleaned up: %s", wave_id, crash_story(error).reason)

    def _job_group(self, phase: str, wave_id: int) -> str:
        return f"txbatch-{id(self)}-{phase}-{wave_id}"
