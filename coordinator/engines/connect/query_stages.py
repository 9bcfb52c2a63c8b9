"""The stages of a wave as queries of Spark Connect, which keep nothing.

Committers that read or have bolts downstream need a second query, as does a wave in which something went wrong. It
begins at the input again, like job 2 of the classic engine after the loss of an executor: spouts that cut partitions
read what query 1 has cut, and the residue of each attempt shows whether committers got the acknowledged tuples.

Spark may compute a partition twice, or place it wherever it likes. Counts and edges show whether a task has received
all that the others have sent; this module checks that each task has answered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from coordinator.engines.connect.arrow_stages import COLUMNS, ArrowStage, seeds
from coordinator.engines.waves.stage import EmitterStage, MeetingStage, WaveInput
from coordinator.engines.waves.stage_context import StageContext, StageFunction
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed


class MisplacedError(Exception):
    """Spark has not run a partition, or has run it in two halves; the wave is tried again."""


class QueryStages:
    """The `WaveStages` of a session; rows are DataFrames (driver).

    Args:
        session: the Spark Connect session.
        plan: the plan to run.
    """

    keeps = False
    has_task_partitions = True

    def __init__(self, session: Any, plan: Plan) -> None:
        self._session, self._meeting_stage = session, plan.meeting_stage
        self._counts = [len(stage.partitions) for stage in plan.stages]

    def first(self, entry: StageContext[Plan], wave: WaveInput) -> Any:
        stage = EmitterStage.of(entry, wave)
        return self.seeded(stage, stage.partition_count, self._counts[1])

    def seeded(self, stage: StageFunction, count: int, next_count: int = 0) -> Any:
        return seeds(self._session, count).mapInArrow(ArrowStage(stage, range(count), count, next_count), COLUMNS)

    def moved(self, rows: Any, index: int) -> Any:
        by_id = getattr(rows, "repartitionById", rows.repartition)  # by hash before 4.1: a task may get many
        return by_id(self._counts[index], "partition")

    def run(self, rows: Any, stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> Any:
        count, below = self._counts[index], self._counts[index + 1 :]
        next_count = 0 if not below or isinstance(stage, MeetingStage) else below[0]
        return rows.mapInArrow(ArrowStage(stage, partitions or range(count), count, next_count), COLUMNS)

    def collected(self, rows: Any, partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        """Runs the query, with every partition: `run` has left out what is not wanted."""
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
