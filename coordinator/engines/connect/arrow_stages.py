"""Stages as `mapInArrow` runs them: rows of two columns, a partition, and a frame for it (executor).

The stage above sends every partition a row without a frame, its summons, in addition to its frames, because Spark might
leave out a partition without rows. A partition is known by its rows, not by where Spark runs them: a task that is given
several partitions runs each.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow

from coordinator.engines.spark.frame_jobs import HELD_BYTES
from coordinator.engines.spark.worker_settling import settle_worker
from coordinator.engines.waves.stage_context import Addressed, StageFunction
from coordinator.topology.planning.plan import Plan

COLUMNS = "partition int, frame binary"
_SCHEMA = pyarrow.schema([("partition", pyarrow.int32()), ("frame", pyarrow.binary())])
_Row = tuple[int, bytes | None]


@dataclass(frozen=True, slots=True)
class PackedPlan:
    """A plan that travels in each query, since Connect has no broadcasts. A worker unpickles it once a run.

    Attributes:
        packed: the pickled plan.
        nonce: the run's nonce.
    """

    packed: bytes
    nonce: str

    @property
    def value(self) -> Plan:
        """The plan."""
        return _unpacked(self.packed, self.nonce)


@lru_cache(maxsize=2)
def _unpacked(packed: bytes, _nonce: str) -> Plan:
    plan: Plan = pickle.loads(packed)
    return plan


@dataclass(frozen=True, slots=True)
class ArrowStage:
    """A stage on the partitions that a task is given; for `mapInArrow`.

    Attributes:
        stage: what runs on each partition.
        partitions: the partitions that run; rows of others are dropped.
        partition_count: how many partitions this stage has.
        next_count: how many partitions the stage below has; 0 if the driver is below.
    """

    stage: StageFunction
    partitions: Collection[int]
    partition_count: int
    next_count: int = 0

    def __call__(self, batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        settle_worker()
        held: defaultdict[int, list[Addressed]] = defaultdict(list)
        for batch in batches:
            for partition, frame in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                records = held[partition]
                if frame is not None:
                    records.append((partition, frame))
        yield from _batches(self._rows(held))

    def _rows(self, held: dict[int, list[Addressed]]) -> Iterator[_Row]:
        for partition in sorted(held):
            if partition in self.partitions:
                yield from self.stage(partition, held.pop(partition))
            yield from ((target, None) for target in range(partition, self.next_count, self.partition_count))


def _batches(rows: Iterable[_Row]) -> Iterator[pyarrow.RecordBatch]:
    partitions: list[int] = []
    frames: list[bytes | None] = []
    held_bytes = 0
    for partition, frame in rows:
        partitions.append(partition)
        frames.append(frame)
        held_bytes += len(frame or b"")
        if held_bytes >= HELD_BYTES:
            yield pyarrow.record_batch([partitions, frames], schema=_SCHEMA)
            partitions, frames, held_bytes = [], [], 0
    yield pyarrow.record_batch([partitions, frames], schema=_SCHEMA)


def nothing_done(session: Any) -> Any:
    """Runs a query of one task that does nothing (driver)."""
    return seeds(session, 1).mapInArrow(_as_they_are, COLUMNS).toArrow()


def seeds(session: Any, count: int) -> Any:
    """Returns a row for each partition of a stage that needs no input."""
    rows = session.range(0, count, 1, count)
    return rows.selectExpr("cast(id AS int) AS partition", "cast(NULL AS binary) AS frame")


def _as_they_are(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    return batches
