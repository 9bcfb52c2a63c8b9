"""The engine of plain topologies on Spark: one wave at a time, on a lane of its own."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from coordinator.engine import WaveCrashed
from coordinator.plain.engine import PlainWave, WaveDrained
from coordinator.plain.wave_plan import WavePlan
from coordinator.spark.crash_reason import crash_reason
from coordinator.spark.frame_flow import FrameFault
from coordinator.spark.plain_wave import PlainDeployment

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkPlainEngine:
    """Runs waves as Spark jobs.

    Args:
        context: a Spark context; it stays running after `close`.
        plan: what to run.
        wave_timeout_s: a wave that takes longer is cancelled; None lets it take its time.
        frame_fault: installed by tests only.
    """

    def __init__(
        self,
        context: SparkContext,
        plan: WavePlan,
        *,
        wave_timeout_s: float | None = None,
        frame_fault: FrameFault | None = None,
    ) -> None:
        self._context = context
        self._topology_id = plan.plain.topology_id
        self._wave_timeout_s = wave_timeout_s
        self._deployment = PlainDeployment(context, plan, context.broadcast(plan), frame_fault)
        self._job_group = f"txbatch-{id(self)}-plain"
        self._lane = ThreadPoolExecutor(1, "txbatch-plain")
        self._running: Future[WaveDrained] | None = None

    def run_wave(self, wave: PlainWave) -> WaveDrained | WaveCrashed:
        """Runs a wave on the lane, so that a signal finds the calling thread at rest."""
        running = self._running = self._lane.submit(self._run, wave)
        if wait([running], self._wave_timeout_s).not_done:
            self._context.cancelJobGroup(self._job_group)
            running.exception()  # its end, for the next wave is to have the executors to itself
            return WaveCrashed(wave.attempt.txid, f"it took longer than {self._wave_timeout_s:g} s and was cancelled")
        try:
            return running.result()
        except Exception as error:  # noqa: BLE001 - whatever Spark raises, the wave's messages have failed
            return WaveCrashed(wave.attempt.txid, crash_reason(error))

    def close(self) -> None:
        """Cancels what runs, waits for it, and deletes what was shipped."""
        if self._running is not None and not self._running.done():
            self._context.cancelJobGroup(self._job_group)
        self._lane.shutdown(wait=True, cancel_futures=True)
        self._deployment.shipped_plan.destroy()

    def _run(self, wave: PlainWave) -> WaveDrained:
        self._context.setLocalProperty("spark.scheduler.pool", "txbatch-processing")
        self._context.setJobGroup(self._job_group, f"txbatch {self._topology_id}: wave", interruptOnCancel=True)
        return self._deployment.run(wave)
