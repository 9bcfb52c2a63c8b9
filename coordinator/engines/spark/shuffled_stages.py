"""The stages of a wave over Spark's shuffles, whose files are kept: a second job need not compute what they hold.

Only few, large frames cross a shuffle, each to the partition that it names. An `Intake` feeds stage 0: it separates a
plan from the origin of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source
from coordinator.engines.waves.stage import EmitterStage, Reading, WaveInput
from coordinator.engines.waves.stage_context import StageContext, StageFunction
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed

if TYPE_CHECKING:
    from pyspark import Broadcast


class Intake(Protocol):
    """Makes the frames of stage 0 (driver, on the thread that runs the wave's job).

    Attributes:
        has_task_partitions: whether the partitions of the frames are those of the plan's stage 0.
    """

    has_task_partitions: bool

    def frames(self, jobs: FrameJobs, entry: StageContext[Plan], wave: WaveInput) -> Frames:
        """Returns the frames of every attempt of a wave, and a report on each attempt from every task of the spout.

        An attempt whose rows cannot be had fails when it runs, with the reason.
        """

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """Returns the wave's results, in which an attempt has failed if its rows were not those of its transaction."""


class EmitterIntake:
    """The intake of spouts that read by themselves, in as many partitions as stage 0 has, or in more."""

    has_task_partitions = True

    def frames(self, jobs: FrameJobs, entry: StageContext[Plan], wave: WaveInput) -> Frames:
        """See `Intake.frames`."""
        stage = EmitterStage.of(entry, wave)
        return Frames(jobs.seeds(stage.partition_count), (stage,))

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """See `Intake.checked`: emitters have checked what they read."""
        return processed


@dataclass(frozen=True, slots=True)
class Deployment:
    """A plan on a Spark context, shared by all waves of a run."""

    jobs: FrameJobs
    plan: Plan
    shipped_plan: Broadcast[Plan]
    intake: Intake
    reading: Reading


def deploy(jobs: FrameJobs, plan: Plan, reading: Reading, intake: Intake | None = None) -> Deployment:
    """Ships a plan (driver, once a run)."""
    return Deployment(jobs, plan, jobs.context.broadcast(plan), intake or EmitterIntake(), reading)


class ShuffledStages:
    """The `WaveStages` of one wave of a deployment."""

    keeps = True

    def __init__(self, deployment: Deployment) -> None:
        self._jobs, self._plan, self._intake = deployment.jobs, deployment.plan, deployment.intake
        self.has_task_partitions = deployment.intake.has_task_partitions
        self._shuffles: list[Source] = []

    def first(self, entry: StageContext[Plan], wave: WaveInput) -> Frames:
        return self._intake.frames(self._jobs, entry, wave)

    def seeded(self, stage: StageFunction, count: int) -> Frames:
        return Frames(self._jobs.seeds(count), (stage,))

    def moved(self, rows: Frames, index: int) -> Frames:
        self._shuffles.append(self._jobs.shuffled(rows, len(self._plan.stages[index].partitions)))
        return Frames(self._shuffles[-1])

    def run(self, rows: Frames, stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> Frames:
        return rows.then(stage)

    def collected(self, rows: Frames, partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        return self._jobs.run(rows, partitions)

    def check(self, answered: Iterable[object], asked: Iterable[object]) -> None:
        """A job runs each partition once, as a whole."""

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        return self._intake.checked(wave, processed)

    def release(self) -> None:
        for shuffled in reversed(self._shuffles):
            shuffled.delete_shuffle_files()
