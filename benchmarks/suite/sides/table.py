"""The sides by name: what is measured next to txbatch, what each can do, and what it needs.

A side is a module of this folder, started as a process with an `Assignment` as its argument; it prints a `Measurement`.
A side whose requirement is missing is left out, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

EVERY_WORKLOAD = ("word_count", "top_k", "dedup", "ledger")
WORD_COUNT = ("word_count",)


@dataclass(frozen=True, slots=True)
class Side:
    """One contender.

    Attributes:
        title: name in the report.
        module: what its process runs.
        workloads: what it can do.
        has_latency: whether transactions can arrive at given times.
        uses_tasks: whether it can work in several tasks; otherwise it is measured once, with one.
        promise: what holds for its results after a crash, for the report.
        requires: module that has to be there, None if nothing but the core.
        remedy: how to get it.
    """

    title: str
    module: str
    workloads: tuple[str, ...]
    promise: str
    has_latency: bool = True
    uses_tasks: bool = True
    requires: str | None = None
    remedy: str = ""

    def missing(self) -> str | None:
        """Returns why this side cannot be measured here, or None if it can."""
        if self.requires is None:
            return None
        try:
            found = find_spec(self.requires)
        except ModuleNotFoundError:
            found = None
        return None if found is not None else f"module {self.requires!r} is not here: {self.remedy}"


SIDES: Mapping[str, Side] = {
    "txbatch": Side(
        title="txbatch, rows",
        module="benchmarks.suite.sides.txbatch",
        workloads=EVERY_WORKLOAD,
        promise="exactly once",
    ),
    "txbatch_columns": Side(
        title="txbatch, columns",
        module="benchmarks.suite.sides.txbatch",
        workloads=WORD_COUNT,
        promise="exactly once",
    ),
    "foreach_batch_best": Side(
        title="foreachBatch, best",
        module="benchmarks.suite.sides.foreach_batch",
        workloads=WORD_COUNT,
        promise="exactly once, by the batch id that the sink compares",
    ),
    "foreach_batch_plain": Side(
        title="foreachBatch, plain",
        module="benchmarks.suite.sides.foreach_batch",
        workloads=WORD_COUNT,
        promise="exactly once, by the batch id that the sink compares",
    ),
    "spark_rdd": Side(
        title="PySpark RDD job",
        module="benchmarks.suite.sides.spark_batch",
        workloads=WORD_COUNT,
        has_latency=False,
        promise="none: a crash loses or repeats writes",
    ),
    "spark_sql": Side(
        title="Spark SQL batch",
        module="benchmarks.suite.sides.spark_batch",
        workloads=WORD_COUNT,
        has_latency=False,
        promise="none: a crash loses or repeats writes",
    ),
    "bytewax": Side(
        title="Bytewax",
        module="benchmarks.suite.sides.bytewax_flow",
        workloads=WORD_COUNT,
        has_latency=False,
        promise="none as configured here, without recovery; at least once with it",
        requires="bytewax",
        remedy="pip install 'txbatch[bench]', on a Python that it supports",
    ),
    "pathway": Side(
        title="Pathway",
        module="benchmarks.suite.sides.pathway_flow",
        workloads=WORD_COUNT,
        has_latency=False,
        uses_tasks=False,
        promise="none as configured here, without persistence; at least once with it",
        requires="pathway",
        remedy="pip install pathway",
    ),
    "redis_pipeline": Side(
        title="redis-py pipeline",
        module="benchmarks.suite.sides.redis_pipeline",
        workloads=EVERY_WORKLOAD,
        uses_tasks=False,
        promise="none: a crash loses or repeats writes",
    ),
}
"""Name -> side, in the report's order."""
