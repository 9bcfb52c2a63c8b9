"""Feeds stage 0 with the partitions of a DataFrame for each transaction; its rows stay on the executors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordinator.planning.plan import Plan
from coordinator.spark.frame_flow import Addressed
from coordinator.spark.rows.stage import Role, RowStage
from coordinator.spark.rows.values import shape_of
from coordinator.spark.stage import WaveInput
from coordinator.transactional.engine import WaveProcessed
from state.codec import unpack
from state.errors import SourceError

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast, SparkContext
    from pyspark.sql import DataFrame

FrameOf = Callable[[Any], "DataFrame"]
"""Metadata of a transaction -> its rows; called on the driver for every attempt, and may raise `SourceError`."""


class RowIntake:
    """The intake of a `RowSpout`.

    Args:
        columns: of the DataFrame, in the order of the tuples' fields.
        frame_of: finds the rows of a transaction.
    """

    def __init__(self, columns: tuple[str, ...], frame_of: FrameOf) -> None:
        self._columns = columns
        self._frame_of = frame_of

    def frames(self, context: SparkContext, shipped_plan: Broadcast[Plan], wave: WaveInput) -> RDD[Addressed]:
        """See `Intake.frames`."""
        tasks = shipped_plan.value.stages[0].tasks
        read: list[RDD[Any]] = []
        roles: list[tuple[Role, ...]] = []
        without_rows: list[Role] = []
        for index, batch in enumerate(wave.batches):
            try:
                frame = selected(self._frame_of(unpack(batch.packed_metadata)), self._columns)
            except SourceError as error:
                without_rows += [Role(index, task, fault=str(error)) for task in tasks]
                continue
            shapes = tuple(shape_of(field.dataType) for field in frame.schema)
            rows = frame.rdd
            if rows.getNumPartitions() > len(tasks):
                rows = rows.coalesce(len(tasks))
            partition_count = rows.getNumPartitions()
            if partition_count:
                read.append(rows)
            roles += [(Role(index, task, shapes),) for task in tasks[:partition_count]]
            without_rows += [Role(index, task) for task in tasks[partition_count:]]
        frames = []
        if read:
            frames.append(context.union(read).mapPartitionsWithIndex(RowStage(shipped_plan, wave, tuple(roles))))
        if without_rows:
            one = context.parallelize([0], 1)
            frames.append(one.mapPartitionsWithIndex(RowStage(shipped_plan, wave, (tuple(without_rows),))))
        return context.union(frames)

    def checked(self, wave: WaveInput, processed: WaveProcessed) -> WaveProcessed:
        """See `Intake.checked`: what a DataFrame of the moment holds is compared with nothing."""
        return processed


def selected(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """The columns a spout wants of a DataFrame (driver).

    Raises:
        SourceError: it lacks one.
    """
    if missing := [name for name in columns if name not in frame.columns]:  # SQL would take `user` for a function
        raise SourceError(
            f"the DataFrame has columns {frame.columns}, and the spout wants {missing} too: select them under these "
            "names, or change the spout's"
        )
    return frame.select([quoted(name) for name in columns])


def quoted(column: str) -> str:
    """A column's name as SQL takes it, whatever characters it has."""
    return "`" + column.replace("`", "``") + "`"
