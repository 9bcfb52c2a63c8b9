"""Where a test runs its topologies: an engine, an empty server, a folder for what workers note."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from coordinator.engines.spark.spark_engine import SparkEngine
from coordinator.engines.waves.stage_context import FrameFault
from coordinator.run import run
from coordinator.topology.building.topology import Topology
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.watching.statistics.run_statistics import RunStatistics


@dataclass
class Cluster:
    """What a test needs to run topologies.

    Attributes:
        where: what `run` is told of the engine.
        redis_url: of the server.
        client: an ordinary client of it.
        notes: the folder.
    """

    where: dict[str, Any]
    redis_url: str
    client: redis.Redis
    notes: Path

    @property
    def context(self) -> Any:
        """The Spark context; without one there is none."""
        return self.where["spark"]

    def run(self, topology: Topology, *, frame_fault: FrameFault | None = None, **more: Any) -> RunStatistics:
        """Runs a topology; names of `RunOptions` go there, a fault to the engine."""
        known = RunOptions.__dataclass_fields__
        options = RunOptions(**{name: more.pop(name) for name in list(more) if name in known})
        if frame_fault is not None:
            more["on_start"] = partial(_install, frame_fault)
        where = {} if {"spark", "master"} & more.keys() else self.where
        return run(topology, redis_url=self.redis_url, options=options, **where, **more)

    def hash(self, key: str) -> dict[str, int]:
        """A hash of integers, read by an ordinary client."""
        found: Any = self.client.hgetall(key)
        return {field.decode(): int(value) for field, value in found.items()}


def _install(fault: FrameFault, coordinator: Coordinator) -> None:
    """Has a run's engine lose or alter frames on their way; called before its first wave."""
    engine = coordinator._engine
    assert isinstance(engine, SparkEngine)
    engine.frame_fault = fault
