"""What feeds stage 0 of a wave: the seam between a plan and where its rows come from."""

from __future__ import annotations

from typing import Protocol

from coordinator.engines.spark.frame_jobs import FrameJobs, Frames
from coordinator.engines.spark.stage import EmitterStage, WaveInput
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed


class Intake(Protocol):
    """Makes the frames of stage 0 (driver, on the thread that runs the wave's job).

    Attributes:
        has_task_partitions: whether the partitions of the frames are those of the plan's stage 0.
    """

    has_task_partitions: bool

    def frames(self, jobs: FrameJobs, entry: StageEntry[Plan], wave: WaveInput) -> Frames:
        """Returns the frames of every attempt of a wave, and a report of every task of the spout on each.

        An attempt whose rows cannot be had fails when it runs, with the reason.
        """

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """Returns the wave's results; an attempt has failed if its rows were not those of its transaction."""


class EmitterIntake:
    """The intake of spouts that read by themselves, in the partitions of stage 0."""

    has_task_partitions = True

    def frames(self, jobs: FrameJobs, entry: StageEntry[Plan], wave: WaveInput) -> Frames:
        """See `Intake.frames`."""
        partition_count = len(entry.plan.value.stages[0].partitions)
        return Frames(jobs.seeds(partition_count), (EmitterStage(entry, wave),))

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """See `Intake.checked`: emitters have checked what they read."""
        return processed
