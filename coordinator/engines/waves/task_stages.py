"""Runs the stages of a wave in this process, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from coordinator.engines.waves.stage import EmitterStage, WaveInput
from coordinator.engines.waves.stage_context import StageContext, StageFunction
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import WaveProcessed

Output = list[tuple[int, bytes]]
"""The output of a task: frames, each with the partition that it goes to."""


class TaskRunner:
    """Runs tasks one after the other, and passes their output to its readers."""

    def run(self, stage: StageFunction, partition: int, records: Output) -> Output:
        """Returns the output of a task, as a list because it is read later."""
        return list(stage(partition, iter(records)))

    def read(self, shuffled: list[Output]) -> dict[int, Output]:
        """Returns the input of each partition."""
        records: dict[int, Output] = {}
        for record in chain.from_iterable(shuffled):
            records.setdefault(record[0], []).append(record)
        return records


class TaskStages:
    """The `WaveStages` of any wave of a plan, whose rows are the output of each task of a stage, held in memory.

    Args:
        plan: the plan to run.
        tasks: runs them.
    """

    keeps = True
    has_task_partitions = True

    def __init__(self, plan: Plan, tasks: TaskRunner) -> None:
        self._plan, self._tasks = plan, tasks

    def first(self, entry: StageContext[Plan], wave: WaveInput) -> list[Output]:
        return self.run([], EmitterStage.of(entry, wave), 0)

    def seeded(self, stage: StageFunction, count: int) -> list[Output]:
        return [self._tasks.run(stage, place, []) for place in range(count)]

    def moved(self, rows: list[Output], index: int) -> list[Output]:
        return rows

    def run(self, rows: list[Output], stage: StageFunction, index: int, partitions: Sequence[int] = ()) -> list[Output]:
        planned = len(self._plan.stages[index].partitions)
        places = partitions or range(stage.partition_count if isinstance(stage, EmitterStage) else planned)
        records = self._tasks.read(rows)
        return [self._tasks.run(stage, place, records.get(place, [])) for place in places]

    def collected(self, rows: list[Output], partitions: Sequence[int]) -> list[tuple[int, bytes]]:
        return [record for output in rows for record in output]

    def check(self, answered: Iterable[object], asked: Iterable[object]) -> None:
        """Each partition runs once, as a whole."""

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        return processed

    def release(self) -> None:
        """Does nothing: only the wave holds its rows."""
