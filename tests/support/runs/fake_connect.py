"""A Spark Connect session whose queries run in this process, and which places partitions as a test wants it."""

# ruff: noqa: N802, N815 - the names are those of Spark
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow
from pyspark import cloudpickle
from pyspark.serializers import CPickleSerializer

Partitions = list[list[tuple[int, bytes | None]]]
Placement = Callable[[Partitions, int], Partitions]
"""(partitions of the stage above, count) -> those of the stage below."""


def by_id(above: Partitions, count: int) -> Partitions:
    """As `repartitionById` does."""
    below: Partitions = [[] for _ in range(count)]
    for row in (row for rows in above for row in rows):
        below[row[0]].append(row)
    return below


def by_hash(above: Partitions, count: int) -> Partitions:
    """As `repartition` by a column: some tasks get several partitions, others none, and Spark leaves those out."""
    by_number = by_id(above, count)
    below: Partitions = [[] for _ in range(count)]
    for number, rows in enumerate(by_number):
        below[number // 2].extend(reversed(rows))
    return [rows for rows in below if rows]


def split(above: Partitions, count: int) -> Partitions:
    """What Spark must not do: every partition is cut in two."""
    return [half for rows in by_id(above, count) for half in (rows[::2], rows[1::2])]


class FakeSession:
    """Stands in for a Connect session.

    Args:
        placement: where rows go between two stages.
        has_ids: whether it has `repartitionById`, as PySpark has from 4.1 on.
    """

    def __init__(self, placement: Placement, *, has_ids: bool = True) -> None:
        self.placement = placement
        self.rows_type = _RowsWithIds if has_ids else _Rows
        self.conf = {"spark.scheduler.mode": "FAIR", "spark.sql.session.timeZone": "UTC"}
        self.tags: list[str] = []

    def range(self, start: int, end: int, step: int, partition_count: int) -> _Rows:
        assert (start, step, partition_count) == (0, 1, end)
        return self.rows_type(self, [[(number, None)] for number in range(end)])

    def addTag(self, tag: str) -> None:
        self.tags.append(tag)

    def removeTag(self, tag: str) -> None:
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> None:
        """What runs ends by itself soon enough."""


class _Rows:
    def __init__(self, session: FakeSession, partitions: Partitions) -> None:
        self._session, self._partitions = session, partitions

    def selectExpr(self, *expressions: str) -> _Rows:
        assert expressions == ("cast(id AS int) AS partition", "cast(NULL AS binary) AS frame")
        return self

    def mapInArrow(self, function: Any, columns: str) -> _Rows:
        assert columns == "partition int, frame binary"
        shipped = CPickleSerializer().loads(cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
        return type(self)(self._session, [_rows_of(shipped([_batch_of(rows)])) for rows in self._partitions])

    def repartition(self, count: int, column: str) -> _Rows:
        assert column == "partition"
        return type(self)(self._session, self._session.placement(self._partitions, count))

    def toArrow(self) -> pyarrow.Table:
        return pyarrow.Table.from_batches([_batch_of(rows) for rows in self._partitions])


class _RowsWithIds(_Rows):
    repartitionById = _Rows.repartition


def _batch_of(rows: list[tuple[int, bytes | None]]) -> pyarrow.RecordBatch:
    columns = [[row[0] for row in rows], [row[1] for row in rows]]
    return pyarrow.record_batch(columns, schema=pyarrow.schema({"partition": "int32", "frame": "binary"}))


def _rows_of(batches: Any) -> list[tuple[int, bytes | None]]:
    return [(row["partition"], row["frame"]) for batch in batches for row in batch.to_pylist()]
