"""Stage 0 of a spout over DataFrames: each Spark partition runs the spout's tasks that it was given.

A wave has a partition for each task of each attempt that has rows to read; tasks without rows share one
partition, since every task has to report that it sent nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.emitting.emitter_task import EmitterTask
from coordinator.emitting.reporting import report_to_acker
from coordinator.planning.plan import Plan
from coordinator.spark.alarm import alarm_for
from coordinator.spark.frame_flow import Addressed, Post
from coordinator.spark.rows.values import Shape, row_converter
from coordinator.spark.stage import WaveInput
from coordinator.spark.worker import settle_worker
from state.errors import SourceError

if TYPE_CHECKING:
    from pyspark import Broadcast


@dataclass(frozen=True, slots=True)
class Role:
    """What one Spark partition does for one attempt.

    Attributes:
        batch_index: which batch of the wave.
        task_id: as which task of the spout.
        shapes: how the values of its rows are converted; empty if it has none.
        fault: why the rows cannot be had; fails the attempt.
    """

    batch_index: int
    task_id: int
    shapes: tuple[Shape, ...] = ()
    fault: str = ""

    def rows(self, records: Iterable[Any]) -> Iterator[list[Any]]:
        """The rows of this task, as they are emitted.

        Raises:
            SourceError: they cannot be had.
        """
        if self.fault:
            raise SourceError(self.fault)
        if self.shapes:
            yield from map(row_converter(self.shapes), records)


@dataclass(frozen=True, slots=True)
class RowStage:
    """Runs the spout's tasks over rows.

    Attributes:
        plan: the plan.
        wave: the attempts.
        roles: Spark partition -> what it does; only a partition with a single role has rows.
    """

    plan: Broadcast[Plan]
    wave: WaveInput
    roles: tuple[tuple[Role, ...], ...]

    def __call__(self, partition: int, records: Iterable[Any]) -> Iterator[Addressed]:
        settle_worker()
        plan = self.plan.value
        post = Post(plan.routes(0))
        for role in self.roles[partition]:
            wiring = plan.wirings[role.task_id]
            emitter = EmitterTask(wiring, post.send, {}, rows=role.rows(records))
            with alarm_for(wiring, self.wave.deadline) as alarm:
                for emitted in emitter.run([self.wave.batches[role.batch_index]], alarm.begin):
                    report_to_acker(plan, role.task_id, emitted, post.send)
                    yield from post.take()
