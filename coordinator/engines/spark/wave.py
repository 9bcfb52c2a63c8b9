"""One wave as one or two Spark jobs over one shuffle.

Job 1 runs the processing stages and collects the ackers' results. Job 2 runs the commit phase of a group from the same
shuffle files; the map stages in front of it are skipped. Committers that only write run in job 1 already, together with
the ackers, and there is no job 2 unless something went wrong. A wave of many attempts is then dealt in `shares`, and
nothing is shuffled at all. Only few large frames cross a shuffle, moved to the partition they name. An `Intake` feeds
stage 0: it is the seam between a plan and where its rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from committers.task_report import TaskReport
from coordinator.engines.spark.alarm import Deadline
from coordinator.engines.spark.frame_jobs import FrameJobs, Frames, Source
from coordinator.engines.spark.shares import ShareStage, shares_of, shares_processed
from coordinator.engines.spark.stage import (
    CommitStage,
    EmitterStage,
    MeetingStage,
    ProcessingStage,
    Reading,
    WaveInput,
    reports_among,
    wave_processed,
)
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, WaveProcessed
from state.attempt import TransactionAttempt

if TYPE_CHECKING:
    from pyspark import Broadcast


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
    context = jobs.context
    return Deployment(jobs, plan, context.broadcast(plan), intake or EmitterIntake(), reading)


class Wave:
    """Many attempts on their way through Spark together; `entry` is that of job 1."""

    def __init__(self, deployment: Deployment, wave_input: WaveInput, entry: StageEntry[Plan]) -> None:
        self._deployment = deployment
        self._plan = deployment.plan
        self._input, self._entry = wave_input, entry
        self._shuffles: list[Source] = []

    def process(self, early: EarlyCommit) -> WaveProcessed:
        """Job 1: the processing phase of all attempts, and the commit phase of `early`."""
        plan, wave, deployment = self._plan, self._input, self._deployment
        shares = shares_of(plan, wave, early) if deployment.intake.has_task_partitions else ()
        if shares:
            stage = ShareStage.of(self._entry, shares)
            count = len(shares)
            answers = deployment.jobs.run(Frames(deployment.jobs.seeds(count), (stage,)), range(count))
            processed = shares_processed(plan, shares, early, answers)
        else:
            met = Frames(self._meeting, (MeetingStage(self._entry, wave, early),))
            partitions = plan.meeting_partitions(with_commit=bool(early.groups))
            processed = wave_processed(plan, wave.wave_id, early, deployment.jobs.run(met, partitions))
        return deployment.intake.checked(wave, processed)

    def commit(
        self, attempts: tuple[TransactionAttempt, ...], *, composed: bool, deadline: Deadline | None = None
    ) -> list[TaskReport]:
        """Job 2: the commit phase of some attempts, in order."""
        entry, reading = replace(self._entry, deadline=deadline), self._deployment.reading
        wave = self._input.attempts().attempts

        def commit_stage(index: int) -> CommitStage:
            return CommitStage(entry, index, wave, attempts, composed, reading)

        first, last = self._plan.meeting_stage, len(self._plan.stages) - 1
        frames = Frames(self._meeting, (commit_stage(first),))
        for index in range(first + 1, last + 1):
            self._shuffles.append(self._shuffled(frames, index))
            frames = Frames(self._shuffles[-1], (commit_stage(index),))
        last_partitions = range(len(self._plan.stages[last].partitions))
        partitions = self._plan.commit_partitions() if first == last else last_partitions
        collected = self._deployment.jobs.run(frames, partitions)
        return reports_among(packed for _, packed in collected)

    def release(self) -> None:
        """Deletes the wave's shuffle files; nothing of it can be run again."""
        for shuffled in reversed(self._shuffles):
            shuffled.delete_shuffle_files()

    @property
    def _meeting(self) -> Source:
        """What the meeting stage reads; both jobs read the same files."""
        if not self._shuffles:
            plan, wave, deployment = self._plan, self._input, self._deployment
            frames = deployment.intake.frames(deployment.jobs, self._entry, wave)
            for index in range(1, plan.meeting_stage):
                stage = ProcessingStage(self._entry, wave.without_content(), index)
                frames = Frames(self._shuffled(frames, index), (stage,))
            self._shuffles.append(self._shuffled(frames, plan.meeting_stage))
        return self._shuffles[0]

    def _shuffled(self, frames: Frames, stage_index: int) -> Source:
        return self._deployment.jobs.shuffled(frames, len(self._plan.stages[stage_index].partitions))
