"""One Spark context at a time, on two local cores, and one real server, shared by all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from coordinator.engines.spark.spark_engine import SparkEngine
from coordinator.engines.waves.stage_entry import FrameFault
from coordinator.run import run
from coordinator.topology.building.topology import Topology
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.watching.statistics.run_statistics import RunStatistics
from tests.conftest import Backend


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests that share a context next to each other: a new one takes seconds, and its workers begin cold."""
    places = [place for place, item in enumerate(items) if Path(__file__).parent in item.path.parents]
    for place, item in zip(places, sorted((items[place] for place in places), key=_has_another_context), strict=True):
        items[place] = item


def _has_another_context(item: pytest.Item) -> bool:
    return "cluster_that_retries" in getattr(item, "fixturenames", ())


class Contexts:
    """Spark contexts by their settings; a process has one, so asking for another one ends the last."""

    def __init__(self, local_dir: Path) -> None:
        self.local_dir = local_dir
        self._opened: tuple[str, dict[str, str]] = ("", {})
        self._context: Any = None

    def open(self, master: str = "local[2]", **settings: str) -> Any:
        """The context with these settings; a name's double underscores stand for dots."""
        wanted = (master, {name.replace("__", "."): value for name, value in settings.items()})
        if self._context is None or wanted != self._opened:
            self.close()
            common = {"spark.local.dir": str(self.local_dir), "spark.driver.memory": "1g"}
            self._context = open_context("tests", master, {**common, **wanted[1]})
            self._opened = wanted
        return self._context

    def shuffle_files(self) -> list[str]:
        """Names of the shuffle files that are on disk."""
        return sorted(path.name for path in self.local_dir.rglob("shuffle_*"))

    def close(self) -> None:
        if self._context is not None:
            stop_context(self._context)
            self._context = None


@dataclass
class Cluster:
    """What a test needs to run topologies: a context, an empty server, a folder for what workers note.

    Without a context, topologies run by the local engine.
    """

    context: Any
    redis_url: str
    client: redis.Redis
    notes: Path

    def run(self, topology: Topology, *, frame_fault: FrameFault | None = None, **more: Any) -> RunStatistics:
        """Runs a topology on the shared context; names of `RunOptions` go there, a fault to the engine."""
        known = RunOptions.__dataclass_fields__
        options = RunOptions(**{name: more.pop(name) for name in list(more) if name in known})
        if frame_fault is not None:
            more["on_start"] = partial(_install, frame_fault)
        where = {"engine": "local"} if self.context is None else {"spark": self.context}
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


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contexts]:
    """The one place where Spark contexts are opened and closed."""
    opened = Contexts(tmp_path_factory.mktemp("spark-local"))
    yield opened
    opened.close()


@pytest.fixture
def cluster(request: pytest.FixtureRequest, contexts: Contexts, redis_backend: Backend, tmp_path: Path) -> Cluster:
    """local[2] with our own settings; by `EITHER_ENGINE` a test runs once more without Spark."""
    assert redis_backend.url is not None
    context = None if getattr(request, "param", "spark") == "local" else contexts.open()
    return Cluster(context, redis_backend.url, redis_backend.client(), tmp_path)


@pytest.fixture
def cluster_that_retries(contexts: Contexts, redis_backend: Backend, tmp_path: Path) -> Cluster:
    """local[2,4]: Spark tries a task four times, which local[2] never does."""
    assert redis_backend.url is not None
    return Cluster(contexts.open("local[2,4]"), redis_backend.url, redis_backend.client(), tmp_path)
