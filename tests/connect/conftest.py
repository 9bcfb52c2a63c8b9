"""One Spark Connect server on two local cores and one real server for state, shared by all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redis

from coordinator.run import run
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from coordinator.watching.statistics.run_statistics import RunStatistics
from tests.conftest import Backend, absent
from tests.support.spark.connect_server import ConnectServer

NEEDED = ("grpc", "grpc_status", "pandas", "pyarrow")


@dataclass
class ConnectCluster:
    """What a test needs to run topologies by Connect: an address, an empty server, a folder for what workers note."""

    address: str
    redis_url: str
    client: redis.Redis
    notes: Path

    def run(self, topology: Topology, **more: Any) -> RunStatistics:
        """Runs a topology on the shared server; names of `RunOptions` go there."""
        known = RunOptions.__dataclass_fields__
        options = RunOptions(**{name: more.pop(name) for name in list(more) if name in known})
        if "spark" not in more:
            more.setdefault("master", self.address)
        return run(topology, redis_url=self.redis_url, options=options, **more)

    def hash(self, key: str) -> dict[str, int]:
        """A hash of integers, read by an ordinary client."""
        found: Any = self.client.hgetall(key)
        return {field.decode(): int(value) for field, value in found.items()}


def require_connect() -> None:
    """Skips a test where PySpark's Connect client cannot be imported."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        absent(f"package {missing[0]} of the extra connect")


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Shared, so no test ends it."""
    require_connect()
    server = ConnectServer(tmp_path_factory.mktemp("connect"))
    yield server
    server.kill()


@pytest.fixture
def cluster(connect_server: ConnectServer, redis_backend: Backend, tmp_path: Path) -> ConnectCluster:
    """The shared server."""
    assert redis_backend.url is not None
    return ConnectCluster(connect_server.address, redis_backend.url, redis_backend.client(), tmp_path)
