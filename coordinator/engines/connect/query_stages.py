"""The stages of a wave as queries of Spark Connect, which keep nothing.

A second query, for committers that read or have bolts downstream, or if something went wrong, begins at the input
again, as job 2 of the classic engine does after an executor was lost: spouts that cut partitions read what query 1 has
cut, and the residue of each attempt says whether committers were sent the very tuples that were acknowledged.

Spark may compute a partition twice, or place it wherever it likes. Counts and edges tell whether a task was sent what
the others have sent; here is checked that each task has answered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coordinator.engines.connect.arrow_stages import COLUMNS, ArrowStage, seeds
from coordinator.engines.waves.stage import EmitterStage, MeetingStage, WaveInput
from coordinator.engines.waves.stage_entry import StageEntry, StageFunction
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed


class MisplacedError(Exception):
    """Spark has run a partition not at all, or in two halves; the wave is tried again."""


class QueryStages:
    """The `WaveStages` of a session; rows are DataFrames (driver).

    Args:
        session: of Spark Connect.
        plan: what to run.
    """

    keeps = False
    has_task_partitions = True

    def __init__(self, session: Any, plan: Plan) -> None:
        self._session, self._meeting_stage = session, plan.meeting_stage
        self._counts = [len(stage.partitions) for stage in plan.stages]

    def first(self, entry: StageEntry[Plan], wave: WaveInput) -> Any:
        stage = EmitterStage.of(entry, wave)
        return self.seeded(stage, stage.partition_count, self._counts[1])

    def seeded(self, stage: StageFunction, count: int, next_count: int = 0) -> Any:
        return seeds(self._session, count).mapInArrow(ArrowStage(stage, range(count), count, next_count), COLUMNS)

    def moved(self, rows: Any, index: int) -> Any:
        by_id = getattr(rows, "repartitionById", rows.repartition)  # by hash before 4.1: a task may get several
        return by_id(self._counts[index], "partition")

    def run(self, rows: Any, stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> Any:
        count, below = self._counts[index], self._counts[index + 1 :]
        next_count = 0 if not below or isinstance(stage, MeetingStage) else below[0]
        return rows.mapInArrow(ArrowStage(stage, partitions or range(count), count, next_count), COLUMNS)

    def collected(self, rows: Any, partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        """Every partition runs; `run` has left out what is not wanted."""
        table = rows.toArrow()
        found = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return [(number, frame) for number, frame in found if frame is not None]

    def check(self, answered: Iterable[Any], asked: Iterable[Any]) -> None:
        found, wanted = sorted(answered), sorted(asked)
        if found != wanted:
            raise MisplacedError(f"only tasks {found} of {wanted} have answered: Spark has split or lost a partition")

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        return processed

    def release(self) -> None:
        """Spark keeps nothing."""
