"""One Spark context at a time, on two local cores, and one real server, shared by all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from tests.conftest import Backend
from tests.support.spark.clusters import Cluster


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
    where = {"engine": "local"} if getattr(request, "param", "spark") == "local" else {"spark": contexts.open()}
    return Cluster(where, redis_backend.url, redis_backend.client(), tmp_path)


@pytest.fixture
def cluster_that_retries(contexts: Contexts, redis_backend: Backend, tmp_path: Path) -> Cluster:
    """local[2,4]: Spark tries a task four times, which local[2] never does."""
    assert redis_backend.url is not None
    return Cluster({"spark": contexts.open("local[2,4]")}, redis_backend.url, redis_backend.client(), tmp_path)
