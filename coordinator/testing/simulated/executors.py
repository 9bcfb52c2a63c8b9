"""What happens to tasks on executors, and to frames between them: retried, twinned, killed, lost, doubled, altered.

Every shuffle keeps what each task wrote, so that a reader may find the output of one execution of a task and another
reader that of another, as it happens on a cluster that loses executors.
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
    """The worker of a task was ended by SIGKILL."""


class Executors(TaskRunner):
    """Runs the tasks of one engine.

    Args:
        random: draws the order in which frames arrive.

    Attributes:
        running: the task that runs or has run last, as its stage and partition; None before the first.
    """

    def __init__(self, faults: FaultPlan, random: Random) -> None:
        self.faults, self._random = faults, random
        self.running: tuple[Stage, int] | None = None

    def reach(self, point: str) -> None:
        """A point of the code, at which a worker may be killed."""
        if point in TASK_POINTS and self.faults.strikes(f"die@{point}"):
            raise TaskDiedError

    def run(self, stage: Stage, partition: int, records: Output) -> Any:
        """What one task leaves, however often it is run."""
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
        """Runs a task, again if its worker dies; what it wrote until then is lost.

        Raises:
            TaskDiedError: as often as Spark tries.
        """
        for _ in range(TASK_TRIES - 1):
            with suppress(TaskDiedError):
                return super().run(stage, partition, records)
        return super().run(stage, partition, records)

    def read(self, shuffled: list[Output]) -> dict[int, Output]:
        """What each partition fetches, in whatever order and with whatever has become of it on the way."""
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
        """Each reader finds, of each task, the output of one of two executions; the driver too."""
        mixed = []
        for one, other in zip(first, second, strict=True):
            readers = sorted({partition for partition, _ in (*one, *other)})
            chosen = {partition: random.choice([one, other]) for partition in readers}
            mixed.append([record for p in readers for record in chosen[p] if record[0] == p])
        return mixed
