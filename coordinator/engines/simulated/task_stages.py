"""The stages of a wave, task by task in this process, on executors where anything may go wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coordinator.engines.simulated.executors import Executors, Output
from coordinator.engines.spark.frame_jobs import StageFunction
from coordinator.engines.spark.stage import EmitterStage, WaveInput
from coordinator.engines.spark.stage_entry import StageEntry
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed


class TaskStages:
    """The `WaveStages` of any wave of a plan; what each task of a stage has written is kept for as long as it is held.

    Args:
        plan: what to run.
        executors: run the tasks, and carry frames between them.
    """

    keeps = True
    has_task_partitions = True

    def __init__(self, plan: Plan, executors: Executors) -> None:
        self._plan, self._executors = plan, executors

    def first(self, entry: StageEntry[Plan], wave: WaveInput) -> list[Output]:
        return self.run([], EmitterStage(entry, wave), 0)

    def seeded(self, stage: StageFunction, count: int) -> list[Output]:
        return [self._executors.run(stage, place, []) for place in range(count)]

    def moved(self, rows: list[Output], index: int) -> list[Output]:
        return rows

    def run(self, rows: list[Output], stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> list[Output]:
        places = partitions or range(len(self._plan.stages[index].partitions))
        records = self._executors.read(rows)
        return [self._executors.run(stage, place, records.get(place, [])) for place in places]

    def collected(self, rows: list[Output], partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        return [record for output in rows for record in output]

    def check(self, answered: Iterable[object], asked: Iterable[object]) -> None:
        """Each partition runs once, as a whole."""

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        return processed

    def release(self) -> None:
        """Nothing is left but what is held."""
