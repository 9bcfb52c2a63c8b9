"""One wave as one or two queries on Spark Connect.

Query 1 runs the processing stages and, for committers that only write, their commit phase. Nothing of it is kept. A
query 2, for committers that read or have bolts downstream, or if something went wrong, begins at the input again, as
job 2 of the classic engine does after an executor was lost: spouts that cut partitions read what query 1 has cut, and
the residue of each attempt says whether committers were sent the very tuples that were acknowledged.

Spark may compute a partition twice, or place it wherever it likes. Counts and edges tell whether a task was sent what
the others have sent; here is checked that each task has answered once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from committers.task_report import TaskReport
from coordinator.engines.connect.arrow_stages import COLUMNS, ArrowStage, PackedPlan, seeds
from coordinator.engines.spark.alarm import Deadline
from coordinator.engines.spark.frame_jobs import StageFunction
from coordinator.engines.spark.shares import ShareStage, opened, shares_of, shares_processed
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


class MisplacedError(Exception):
    """Spark has run a partition not at all, or in two halves; the wave is tried again."""


@dataclass(frozen=True, slots=True)
class ConnectDeployment:
    """A plan on a Connect session, shared by all waves of a run (driver).

    Attributes:
        session: of Spark Connect.
    """

    session: Any
    plan: Plan
    shipped_plan: PackedPlan
    reading: Reading


class ConnectWave:
    """Many attempts on their way through Spark together (driver); used on the threads that run queries."""

    def __init__(self, deployment: ConnectDeployment, wave_input: WaveInput) -> None:
        self._deployment, self._plan = deployment, deployment.plan
        self._input = wave_input

    def process(self, early: EarlyCommit, deadline: Deadline | None) -> WaveProcessed:
        """Query 1: the processing phase of all attempts, and the commit phase of `early`."""
        plan, entry = self._plan, StageEntry(self._deployment.shipped_plan, deadline=deadline)
        partitions = plan.meeting_partitions(with_commit=bool(early.groups))
        asked = [task for place in partitions for task in plan.stages[plan.meeting_stage].partitions[place]]
        shares = shares_of(plan, self._input, early)
        if shares:
            answers = self._collected(self._seeded(len(shares), ShareStage.of(entry, shares)))
            each = [(place, task_id) for place in range(len(shares)) for task_id in asked]
            _check_answers(((place, opened(answer)[0]) for place, answer in answers), each)
            processed = shares_processed(plan, shares, early, answers)
        else:
            meeting = MeetingStage(entry, self._input, early)
            rows = self._collected(self._then(self._meeting_rows(entry), plan.meeting_stage, meeting, partitions))
            _check_answers((task_id for task_id, _ in rows), asked)
            processed = wave_processed(plan, self._input.wave_id, early, rows)
        self._input = self._input.with_cuts(processed.outcomes)
        return processed

    def commit(
        self, attempts: tuple[TransactionAttempt, ...], *, composed: bool, deadline: Deadline | None
    ) -> list[TaskReport]:
        """Query 2: the processing phase again, and the commit phase of some attempts, in order."""
        plan, entry = self._plan, StageEntry(self._deployment.shipped_plan, deadline=deadline)
        wave, reading = self._input.attempts().attempts, self._deployment.reading
        query = self._meeting_rows(entry)
        for index in range(plan.meeting_stage, len(plan.stages)):
            stage = CommitStage(entry, index, wave, attempts, composed, reading)
            query = self._then(query, index, stage)
        reports = reports_among(packed for _, packed in self._collected(query))
        _check_answers((report.task_id for report in reports), plan.commit_tasks)
        return reports

    def _meeting_rows(self, entry: StageEntry[Plan]) -> Any:
        """Returns what the meeting stage reads."""
        lean_input = self._input.without_content()
        query = self._seeded(self._counts[0], EmitterStage(entry, self._input), self._counts[1])
        for index in range(1, self._plan.meeting_stage):
            query = self._then(query, index, ProcessingStage(entry, lean_input, index))
        return query

    def _seeded(self, count: int, stage: StageFunction, next_count: int = 0) -> Any:
        """Runs a stage that needs no input, in `count` partitions."""
        rows = seeds(self._deployment.session, count)
        return rows.mapInArrow(ArrowStage(stage, range(count), count, next_count), COLUMNS)

    def _then(self, rows: Any, index: int, stage: StageFunction, partitions: Collection[int] = ()) -> Any:
        """Moves rows to the partitions that they name, and runs a stage on each of them, or only on some."""
        count = self._counts[index]
        by_id = getattr(rows, "repartitionById", rows.repartition)  # by hash before 4.1: a task may get several
        next_count = self._counts[index + 1] if index + 1 < len(self._counts) else 0
        if index == self._plan.meeting_stage and isinstance(stage, MeetingStage):
            next_count = 0
        run = ArrowStage(stage, partitions or range(count), count, next_count)
        return by_id(count, "partition").mapInArrow(run, COLUMNS)

    def _collected(self, query: Any) -> list[tuple[int, bytes]]:
        table = query.toArrow()
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return [(number, frame) for number, frame in rows if frame is not None]

    @property
    def _counts(self) -> list[int]:
        return [len(stage.partitions) for stage in self._plan.stages]


def _check_answers(answered: Iterable[Any], asked: Iterable[Any]) -> None:
    found, wanted = sorted(answered), sorted(asked)
    if found != wanted:
        raise MisplacedError(f"tasks {found} have answered of tasks {wanted}: Spark has split or lost a partition")
