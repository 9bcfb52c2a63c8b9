"""Faults of tasks on executors and of frames: tasks are retried, run twice or killed; frames lost, doubled or altered.

Every shuffle keeps the outputs of tasks, so that two readers may find the outputs of two executions of one task, as
happens on a cluster that loses executors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

from coordinator.engines.waves.task_stages import Output, TaskRunner
from coordinator.testing.simulated.fault_plan import TASK_POINTS, FaultPlan
from state.errors import Interruption

TASK_TRIES = 4
"""spark.task.maxFailures"""
Stage = Callable[[int, Any], Any]


class TaskDiedError(Interruption):
    """SIGKILL has ended the worker of a task."""


class Executors(TaskRunner):
    """Runs the tasks of one engine.

    Args:
        random: draws the order in which frames arrive.

    Attributes:
        running: stage and partition of the current or last task; None before the first task.
    """

    def __init__(self, faults: FaultPlan, random: Random) -> None:
        self.faults, self._random = faults, random
        self.running: tuple[Stage, int] | None = None

    def reach(self, point: str) -> None:
        """Called at a named point of the code, where a worker may be killed."""
        if point in TASK_POINTS and self.faults.strikes(f"die@{point}"):
            raise TaskDiedError

    def run(self, stage: Stage, partition: int, records: Output) -> Any:
        """Returns the output of one task, which may be run several times."""
        self.running = stage, partition
        if self.faults.strikes("task.is_retried"):
            given_up = iter(stage(partition, iter(records)))
            with suppress(TaskDiedError):
                for _ in range(self.faults.drawn("task.is_retried").randint(0, 3)):
                    next(given_up, None)
            del given_up
        output = self._tried(stage, partition, records)
        if self.faults.strikes("task.has_a_twin"):
            twin = self._tried(stage, partition, records)
            return self.mixed([output], [twin], self.faults.drawn("task.has_a_twin"))[0]
        return output

    def _tried(self, stage: Stage, partition: int, records: Output) -> Output:
        """Runs a task, again if its worker dies, whose output is then lost.

        Raises:
            TaskDiedError: the worker died in every try that Spark makes.
        """
        for _ in range(TASK_TRIES - 1):
            with suppress(TaskDiedError):
                return super().run(stage, partition, records)
        return super().run(stage, partition, records)

    def read(self, shuffled: list[Output]) -> dict[int, Output]:
        """Returns the frames that each partition fetches, in any order, after faults in transit."""
        records: dict[int, Output] = {}
        for output in shuffled:
            for partition, packed in output:
                for arriving in self._arriving(packed):
                    records.setdefault(partition, []).append((partition, arriving))
        for fetched in records.values():
            self._random.shuffle(fetched)
        return records

    def _arriving(self, packed: bytes) -> list[bytes]:
        faults = self.faults
        if faults.strikes("frame.is_lost"):
            return []
        if faults.strikes("frame.is_doubled"):
            return [packed, packed]
        if faults.strikes("frame.is_altered"):
            random = faults.drawn("frame.is_altered")
            place = random.randrange(len(packed))
            return [packed[:place] + bytes([packed[place] ^ (1 << random.randrange(8))]) + packed[place + 1 :]]
        return [packed]

    def mixed(self, first: list[Output], second: list[Output], random: Random) -> list[Output]:
        """Returns outputs in which each reader, even the driver, finds one of two executions of each task."""
        mixed = []
        for one, other in zip(first, second, strict=True):
            readers = sorted({partition for partition, _ in (*one, *other)})
            chosen = {partition: random.choice([one, other]) for partition in readers}
            mixed.append([record for p in readers for record in chosen[p] if record[0] == p])
        return mixed
