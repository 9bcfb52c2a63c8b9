"""Gives a spout over DataFrames what it reads with, once Spark is there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from coordinator.engines.spark.intake.frame_reader import SparkFrameReader
from coordinator.engines.spark.intake.intake import Intake
from coordinator.engines.spark.intake.row_intake import RowIntake
from coordinator.engines.spark.session import SparkLease
from coordinator.sources.data_frame_batches import DataFrameBatches, Unit
from coordinator.topology.building.topology import Topology


def bound_to_spark(topology: Topology, lease: SparkLease, spark: Any) -> tuple[Topology, Intake]:
    """Returns the topology as the driver runs it, and what feeds its stage 0 (driver, once a run).

    Args:
        topology: as built; its spout is a `DataFrameBatches`.
        lease: the context of the run.
        spark: the user's session, or whatever else was given.
    """
    spout, spec = topology.spout, topology.spout.spec
    assert isinstance(spec, DataFrameBatches)
    session = spark if isinstance(spark, SparkSession) else SparkSession(lease.context)
    reader = SparkFrameReader(session, spec, lease.watch.call)
    intake = RowIntake(spec.columns, reader.rows, lambda metadata: Unit.from_plain(metadata, "").row_count)
    bound = replace(spout, spec=spec.bound(reader))
    return replace(topology, components=(bound, *topology.components[1:])), intake
