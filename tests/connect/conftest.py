"""One Spark Connect server on two local cores and one real server for state, shared by all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Backend, absent
from tests.support.spark.clusters import Cluster
from tests.support.spark.connect_server import ConnectServer

NEEDED = ("grpc", "grpc_status", "pandas", "pyarrow")


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
def cluster(connect_server: ConnectServer, redis_backend: Backend, tmp_path: Path) -> Cluster:
    """The shared server."""
    assert redis_backend.url is not None
    return Cluster({"master": connect_server.address}, redis_backend.url, redis_backend.client(), tmp_path)
