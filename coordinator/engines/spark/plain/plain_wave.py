"""One wave of a plain topology as one Spark job: a stage for each level of bolts, then the ackers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinated_bolt.transport.frames import frame_target
from coordinator.engines.spark.alarm import Deadline
from coordinator.engines.spark.frame_flow import Addressed
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source
from coordinator.engines.spark.plain.plain_stage import BoltStage, SpoutEnd, plain_stage, wave_drained
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.plain.plain_engine import PlainWave, WaveDrained
from coordinator.plain.plain_plan import PlainPlan

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class PlainDeployment:
    """A plan on a Spark context, shared by all waves of a run.

    Attributes:
        jobs: runs jobs on the Spark context.
        plan: the plan.
        shipped_plan: the same, broadcast.
        wave_timeout_s: a wave that takes longer is cancelled, user code that does not return a little before that.
    """

    jobs: FrameJobs
    plan: PlainPlan
    shipped_plan: Broadcast[PlainPlan]
    wave_timeout_s: float | None = None

    def run(self, wave: PlainWave) -> WaveDrained:
        """Runs one wave, and deletes its shuffle files whatever comes of it."""
        plan = self.plan
        deadline = None if self.wave_timeout_s is None else Deadline(time.time(), self.wave_timeout_s)
        entry = StageEntry(self.shipped_plan, deadline=deadline)
        first = BoltStage(entry, wave.wave_id, 0)
        frames = self._emitted(wave).then(SpoutEnd(first))
        last_shuffled: Source | None = None
        for index in range(1, len(plan.stages)):
            last_shuffled = self.jobs.shuffled(frames, len(plan.stages[index].tasks))
            frames = Frames(last_shuffled, (plain_stage(entry, plan, wave.wave_id, index),))
        try:
            return wave_drained(self.jobs.run(frames, range(len(plan.stages[-1].tasks))))
        finally:
            if last_shuffled is not None:
                last_shuffled.delete_shuffle_files()

    def _emitted(self, wave: PlainWave) -> Frames:
        """What the spouts have emitted, in the partitions of stage 0: nothing has to be shuffled for it."""
        parts = emitted_parts(self.plan, wave)
        return Frames(Source.of(self.jobs.context.parallelize(parts, len(parts))))


def emitted_parts(plan: PlainPlan, wave: PlainWave) -> list[list[Addressed]]:
    """The frames of a wave by partition of stage 0 (driver)."""
    routes = plan.chain.routes_into(0)
    parts: list[list[Addressed]] = [[] for _ in plan.stages[0].tasks]
    for packed in wave.frames:
        partition = routes[frame_target(packed)]
        parts[partition].append((partition, packed))
    return parts
