"""The engine on Spark: two lanes, one for processing and one for commits, each in its own FAIR pool."""

from __future__ import annotations

import logging
import queue
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.engine import EarlyCommit, Event, GroupCrashed, GroupExecuted, WaveCrashed
from coordinator.plan import Plan
from coordinator.spark.crash_reason import crash_reason
from coordinator.spark.frame_flow import FrameFault
from coordinator.spark.session import is_fair
from coordinator.spark.stage import Reading, WaveInput
from coordinator.spark.wave import Deployment, Wave
from coordinator.spouts.emitting import Batch
from state import TransactionAttempt, save_redis_url

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger("txbatch")


class SparkEngine:
    """Runs waves as Spark jobs.

    Args:
        context: a Spark context; it stays running after `close`.
        plan: what to run.
        redis_url: where committers' reads go; written to a file only its owner can read.
        nonce: of this run; its committers read no state that another run has written.
        frame_fault: installed by tests only.
    """

    def __init__(
        self,
        context: SparkContext,
        plan: Plan,
        redis_url: str,
        nonce: str,
        *,
        frame_fault: FrameFault | None = None,
    ) -> None:
        self._context = context
        self._plan = plan
        self._frame_fault = frame_fault
        self._private = tempfile.TemporaryDirectory(prefix="txbatch-run-")
        self._deployment = Deployment(
            context=context,
            plan=plan,
            shipped_plan=context.broadcast(plan),
            seeds=context.parallelize(range(len(plan.emitter_tasks)), len(plan.emitter_tasks)),
            reading=Reading(save_redis_url(redis_url, Path(self._private.name)), nonce),
        )
        self._waves: dict[int, Wave] = {}
        self._running: set[str] = set()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._processing_lane = ThreadPoolExecutor(1, "txbatch-processing")
        self._commit_lane = ThreadPoolExecutor(1, "txbatch-commit")
        self.overlaps = is_fair(context)
        if not self.overlaps:
            _LOG.info("this Spark context schedules FIFO: one wave at a time; set spark.scheduler.mode=FAIR for two")

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts job 1 of a wave."""
        wave_input = WaveInput(
            wave_id, batches, {scope: dict(values) for scope, values in stored.items()}, self._frame_fault
        )

        def job() -> Event:
            wave = self._waves[wave_id] = Wave(self._deployment, wave_input)
            return wave.process(early)

        self._processing_lane.submit(self._run, "processing", wave_id, job, lambda reason: WaveCrashed(wave_id, reason))

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Starts job 2 of a wave; without commit tasks there is nothing to run."""
        if not self._plan.commit_tasks:
            self._events.put(GroupExecuted(wave_id, attempts, ()))
            return

        def job() -> Event:
            reports = self._waves[wave_id].commit(attempts, composed=composed)
            return GroupExecuted(wave_id, attempts, tuple(reports))

        self._commit_lane.submit(
            self._run, "commit", wave_id, job, lambda reason: GroupCrashed(wave_id, attempts, reason)
        )

    def cancel(self, wave_id: int) -> None:
        """Cancels the jobs of a wave."""
        for phase in ("processing", "commit"):
            job_group = self._job_group(phase, wave_id)
            if job_group in self._running:  # Spark warns of groups it does not know
                self._context.cancelJobGroup(job_group)

    def release(self, wave_id: int) -> None:
        """Deletes the shuffle files of a wave, after the job that may still use them."""
        self._processing_lane.submit(self._release, wave_id)

    def next_event(self, timeout_s: float) -> Event | None:
        """The next event, or None after the time."""
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Cancels what runs, waits for the lanes, and deletes what was shipped and shuffled."""
        for wave_id in list(self._waves):
            self.cancel(wave_id)
        for lane in (self._commit_lane, self._processing_lane):
            lane.shutdown(wait=True, cancel_futures=True)
        for wave_id in list(self._waves):
            self._release(wave_id)
        self._deployment.shipped_plan.destroy()
        self._private.cleanup()

    def _run(self, phase: str, wave_id: int, job: Callable[[], Event], crashed: Callable[[str], Event]) -> None:
        """Runs one job on its lane and turns whatever happens into an event."""
        job_group = self._job_group(phase, wave_id)
        self._running.add(job_group)
        try:
            self._context.setLocalProperty("spark.scheduler.pool", f"txbatch-{phase}")
            description = f"txbatch {self._plan.topology_id}: {phase}"
            self._context.setJobGroup(job_group, description, interruptOnCancel=True)
            event = job()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises, the coordinator has to know
            event = crashed(crash_reason(error))
        self._running.discard(job_group)
        self._events.put(event)

    def _release(self, wave_id: int) -> None:
        wave = self._waves.pop(wave_id, None)
        if wave is not None:
            try:
                wave.release()
            except Exception as error:  # noqa: BLE001 - a context that is gone has no files left
                _LOG.debug("wave %d could not be cleaned up: %s", wave_id, crash_reason(error))

    def _job_group(self, phase: str, wave_id: int) -> str:
        return f"txbatch-{id(self)}-{phase}-{wave_id}"
