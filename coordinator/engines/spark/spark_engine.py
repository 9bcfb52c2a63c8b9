"""The engine on Spark: two lanes, one for processing and one for commits, each in its own FAIR pool."""

from __future__ import annotations

import logging
import queue
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from coordinator.engines.spark.alarm import Deadline
from coordinator.engines.spark.cluster.cluster_watch import ClusterWatch
from coordinator.engines.spark.cluster.probe import look_at_executors
from coordinator.engines.spark.cluster.running_jobs import FIRST_WAVE, RunningJobs, overdue_story
from coordinator.engines.spark.crash_story import blamed, crash_story
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, does_nothing, settle_thread
from coordinator.engines.spark.lane import Lane
from coordinator.engines.spark.session import SparkLease, is_fair, is_in_process
from coordinator.engines.spark.shuffled_stages import Intake, ShuffledStages, deploy
from coordinator.engines.spark.stage import Reading, WaveInput
from coordinator.engines.spark.stage_entry import FrameFault, StageEntry
from coordinator.engines.spark.wave import Wave, at_once
from coordinator.spouts.batch_emitters import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import (
    ClusterNoted,
    EarlyCommit,
    Event,
    GroupCrashed,
    GroupExecuted,
    PhaseWaits,
    WaveCrashed,
)
from coordinator.transactional.options import EXECUTORS_TIMEOUT_S
from coordinator.watching.failure_cause import CrashKind
from state.attempt import TransactionAttempt
from state.errors import EngineError
from state.redis_topology.reader import save_redis_url

_LOG = logging.getLogger("txbatch")
PHASES = ("processing", "commit")
FIRST_LOOK = "executors"
"""The job that runs before the first wave, in place of a phase."""
LANE_CLOSE_S = 30.0
"""How long a cancelled job may take to end; Spark kills its workers after two seconds."""


class SparkEngine:
    """Runs waves as Spark jobs.

    Args:
        lease: a Spark context, which stays running after `close`, and the watch over its Java process.
        plan: what to run.
        redis_url: where committers' reads go; written to a file only its owner can read.
        nonce: of this run; its committers read no state that another run has written.
        message_timeout_s: how long a job may take before user code that does not return is ended; None for ever.
        executors_timeout_s: how long the run waits for an executor.
        code: the archive that tasks import from; see `ship_code`.
        intake: what feeds stage 0, unless the spout's tasks read by themselves.

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
        self._context, self._watch = context, watch = lease.context, lease.watch
        self._plan = plan
        self._message_timeout_s = message_timeout_s
        self.frame_fault: FrameFault | None = None
        self._private = tempfile.TemporaryDirectory(prefix="txbatch-run-")
        reading = Reading(save_redis_url(redis_url, Path(self._private.name)), nonce)
        self._deployment = watch.call(lambda: deploy(FrameJobs(context, code), plan, reading, intake))
        self._waves: dict[int, Wave[Frames]] = {}
        self._events: queue.SimpleQueue[Event | EngineError] = queue.SimpleQueue()
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
        self._processed_s = 0.0
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

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts job 1 of a wave."""
        copied = {scope: dict(values) for scope, values in stored.items()}
        wave_input = WaveInput(wave_id, batches, copied)
        behind, job_group = self._last_processing, self._job_group("processing", wave_id)
        self._last_processing = job_group
        deadline = self._deadline(is_queued=behind in self._running)

        def job() -> Event:
            started_s = time.monotonic()
            deployed = self._deployment
            entry = StageEntry(deployed.shipped_plan, self.frame_fault)
            wave = Wave(self._plan, ShuffledStages(deployed), wave_input, entry, deployed.reading)
            self._waves[wave_id] = wave
            processed = at_once(wave.process(early, deadline))
            began_s, self._processed_s = max(started_s, self._processed_s), time.monotonic()
            return replace(processed, seconds=self._processed_s - began_s)

        crashed = partial(WaveCrashed, wave_id)
        what = self._described(wave_id, [batch.attempt for batch in batches], "processing")
        self._running.began(job_group, wave_id, behind=behind)
        self._processing_lanes[0].submit(partial(self._run, "processing", wave_id, what, job, crashed))
        self._processing_lanes.rotate()

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Starts job 2 of a wave; without commit tasks there is nothing to run."""
        if not self._plan.commit_tasks:
            self._events.put(GroupExecuted(wave_id, attempts, ()))
            return

        def job() -> Event:
            steps = self._waves[wave_id].commit(attempts, composed=composed, deadline=self._deadline())
            reports = at_once(steps)
            return GroupExecuted(wave_id, attempts, tuple(reports))

        crashed = partial(GroupCrashed, wave_id, attempts)
        what = self._described(wave_id, attempts, "commit")
        self._running.began(self._job_group("commit", wave_id), wave_id)
        self._commit_lane.submit(partial(self._run, "commit", wave_id, what, job, crashed))

    def cancel(self, wave_id: int) -> None:
        """Cancels the jobs of a wave."""
        for phase in (*PHASES, FIRST_LOOK):
            job_group = self._job_group(phase, wave_id)
            if job_group in self._running:  # Spark warns of groups it does not know
                self._watch.call(partial(self._context.cancelJobGroup, job_group))

    def release(self, wave_id: int) -> None:
        """Deletes the shuffle files of a wave, after the job that may still use them."""
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
        try:
            event = self._events.get(timeout=timeout_s)
        except queue.Empty:
            waiting = self._running.waiting()  # waves that have a phase of which no task runs
            return PhaseWaits(waiting) if waiting else None
        if isinstance(event, EngineError):
            raise event
        return event

    def close(self) -> None:
        """Cancels what runs, waits for the lanes, and deletes what was shipped and shuffled.

        With Spark gone there is nothing of that to do.
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

    def _described(self, wave_id: int, attempts: Sequence[TransactionAttempt], phase: str) -> str:
        """Returns what Spark's UI shows of a job."""
        first, last = attempts[0].txid, attempts[-1].txid
        txids = f"txid {first}" if first == last else f"txids {first}..{last}"
        return f"{self._plan.topology_id}: wave {wave_id}, {txids}, {phase}"

    def _run(
        self,
        phase: str,
        wave_id: int,
        description: str,
        job: Callable[[], Event],
        crashed: Callable[[str, CrashKind], Event],
    ) -> None:
        """Runs one job on its lane and turns whatever happens into an event."""
        job_group = self._job_group(phase, wave_id)
        try:
            self._context.setJobGroup(job_group, description, interruptOnCancel=True)
            event = job()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises, the coordinator has to know
            try:
                self._watch.check()
            except EngineError:
                return  # the watch tells the thread that waits for events
            _LOG.debug("a job crashed:\n%s", error)
            jobs = self._deployment.jobs
            story = overdue_story(self._context, job_group) or crash_story(error)
            story = blamed(story, lambda: jobs.run(Frames(jobs.seeds(1), (does_nothing,)), [0]))
            event = crashed(story.reason, story.kind)
        self._running.ended(job_group)
        self._events.put(event)

    def _release(self, wave_id: int) -> None:
        wave = self._waves.pop(wave_id, None)
        if wave is not None:
            try:
                wave.release()
            except Exception as error:  # noqa: BLE001 - a context that is gone has no files left
                _LOG.debug("wave %d could not be cleaned up: %s", wave_id, crash_story(error).reason)

    def _deadline(self, *, is_queued: bool = False) -> Deadline | None:
        """Returns the deadline of a job that begins now or, if it is queued, a timeout later at most."""
        timeout_s = self._message_timeout_s
        return None if timeout_s is None else Deadline(time.time() + is_queued * timeout_s, timeout_s)

    def _job_group(self, phase: str, wave_id: int) -> str:
        return f"txbatch-{id(self)}-{phase}-{wave_id}"
