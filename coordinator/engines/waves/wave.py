"""One wave as one or two jobs, the same for every engine; each engine moves the rows by its own `WaveStages`.

Job 1 runs the processing stages and collects the ackers' results. Job 2 runs the commit phase of a group on the frames
that the meeting stage has received. Committers that only write already run in job 1, together with the ackers, and
there is no job 2 unless something went wrong. A wave of many attempts is then divided into `shares`, and no rows move.

A job pauses after each stage, so that a simulation can let time pass or cancel the wave; Spark runs it `at_once`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Generic, Protocol, TypeVar

from committers.task_report import TaskReport
from coordinator.engines.waves.alarm import Deadline
from coordinator.engines.waves.shares import ShareStage, opened, shares_of, shares_processed
from coordinator.engines.waves.stage import (
    CommitStage,
    MeetingStage,
    ProcessingStage,
    Reading,
    WaveInput,
    reports_among,
    wave_processed,
)
from coordinator.engines.waves.stage_context import StageContext, StageFunction
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit, WaveProcessed
from state.attempt import TransactionAttempt

RowsT = TypeVar("RowsT")
T = TypeVar("T")


Steps = Generator[None, None, T]
"""A job in steps; the generator's return value is the job's result."""


def at_once(steps: Steps[T]) -> T:
    """Runs a job to its end."""
    while True:  # bounded by the stages of the plan
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class WaveStages(Protocol[RowsT]):
    """Moves the rows of one wave from stage to stage (driver, on the thread that runs the wave's job).

    Attributes:
        keeps: whether another job can read rows again that were moved once.
        has_task_partitions: whether the partitions of stage 0 are those of the plan.
    """

    keeps: bool
    has_task_partitions: bool

    def first(self, entry: StageContext[Plan], wave: WaveInput) -> RowsT:
        """Returns the rows that the spout sends: the frames of every attempt, and a report of each of its tasks."""

    def seeded(self, stage: StageFunction, count: int) -> RowsT:
        """Runs a stage that needs no input, in `count` partitions."""

    def moved(self, rows: RowsT, index: int) -> RowsT:
        """Moves rows to the partitions that they name, in a stage."""

    def run(self, rows: RowsT, stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> RowsT:
        """Runs a stage of the plan on rows that were moved to it, in some of its partitions or in all."""

    def collected(self, rows: RowsT, partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        """Runs a job, and returns the records that some partitions yield."""

    def check(self, answered: Iterable[object], asked: Iterable[object]) -> None:
        """Raises an error unless every task has answered once, if Spark may split or lose a partition."""

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """Returns the wave's results, in which an attempt has failed if its rows were not those of its transaction."""

    def release(self) -> None:
        """Deletes the rows that are kept; no part of the wave can be run again."""


class Wave(Generic[RowsT]):
    """A wave: many attempts that are processed together.

    Args:
        plan: the plan to run.
        stages: the stages of this wave alone.
        wave_input: the attempts of the wave.
        entry: the entry of all stages, without a deadline.
        reading: the values that committers need to read state.
    """

    def __init__(
        self, plan: Plan, stages: WaveStages[RowsT], wave_input: WaveInput, entry: StageContext[Plan], reading: Reading
    ) -> None:
        self._plan, self._stages, self._input = plan, stages, wave_input
        self._entry, self._reading = entry, reading
        self._kept: RowsT | None = None

    def process(self, early: EarlyCommit, deadline: Deadline | None = None) -> Steps[WaveProcessed]:
        """Job 1: the processing phase of all attempts, and the commit phase of `early`."""
        plan, stages, wave, entry = self._plan, self._stages, self._input, replace(self._entry, deadline=deadline)
        partitions = plan.meeting_partitions(with_commit=bool(early.groups))
        asked = [task for place in partitions for task in plan.stages[plan.meeting_stage].partitions[place]]
        shares = shares_of(plan, wave, early) if stages.has_task_partitions else ()
        if shares:
            places = range(len(shares))
            answers = stages.collected(stages.seeded(ShareStage.of(entry, shares), len(shares)), places)
            stages.check(((place, opened(answer)[0]) for place, answer in answers), product(places, asked))
            processed = shares_processed(plan, shares, early, answers)
        else:
            meeting = MeetingStage(entry, wave, early)
            arriving = yield from self._rows_of_meeting_stage(entry)
            verdicts = stages.run(arriving, meeting, plan.meeting_stage, partitions)
            found = stages.collected(verdicts, partitions)
            stages.check((task_id for task_id, _ in found), asked)
            processed = wave_processed(plan, wave.wave_id, early, found)
        yield
        if shares or not stages.keeps:  # the commit phase begins at the input again, and reads the cuts made now
            self._input = wave.with_cuts(processed.outcomes)
        return stages.checked(wave, processed)

    def commit(
        self, attempts: tuple[TransactionAttempt, ...], *, composed: bool, deadline: Deadline | None = None
    ) -> Steps[list[TaskReport]]:
        """Job 2: the commit phase of some attempts, in order."""
        plan, stages, entry = self._plan, self._stages, replace(self._entry, deadline=deadline)
        wave, first, last = self._input.attempts().attempts, plan.meeting_stage, len(plan.stages) - 1
        rows = yield from self._rows_of_meeting_stage(entry)
        for index in range(first, last + 1):
            stage = CommitStage(entry, index, wave, attempts, composed, self._reading)
            rows = stages.run(rows if index == first else stages.moved(rows, index), stage, index)
            yield
        partitions = plan.commit_partitions() if first == last else range(len(plan.stages[last].partitions))
        reports = reports_among(packed for _, packed in stages.collected(rows, partitions))
        stages.check((report.task_id for report in reports), plan.commit_tasks)
        return reports

    def release(self) -> None:
        """Deletes everything that the wave keeps; no part of it can be run again."""
        self._stages.release()

    def _rows_of_meeting_stage(self, entry: StageContext[Plan]) -> Steps[RowsT]:
        """Returns the rows that the meeting stage reads: those that job 1 has kept, or else computed again."""
        if self._kept is not None:
            return self._kept
        plan, stages, lean = self._plan, self._stages, self._input.without_content()
        rows = stages.first(entry, self._input)
        yield
        for index in range(1, plan.meeting_stage):
            rows = stages.run(stages.moved(rows, index), ProcessingStage(entry, lean, index), index)
            yield
        rows = stages.moved(rows, plan.meeting_stage)
        if stages.keeps:
            self._kept = rows
        return rows
