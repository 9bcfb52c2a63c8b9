"""A dashboard in process, over a server in memory or a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

from coordinator.operating.ui.dashboard import Pages, dashboard
from state.redis_admin.topology_reader import TopologyReader
from state.redis_client.connection import RedisConnection
from tests.support.dashboard.stored import NOW

AT = NOW + 1


def reader_of(client: Any, *, server: str = "redis://cache:6379") -> TopologyReader:
    """Looks through a client that is there already, at a moment of ours."""
    return TopologyReader(RedisConnection(client, server, timeout_s=0.0), clock=lambda: AT)


def opened(client: Any, *, hide: Callable[[str], str] = str, **options: Any) -> TestClient:
    """A browser's side of the dashboard, without a socket."""
    app = dashboard(Pages(reader_of(client), clock=lambda: AT, hide=hide), **options)
    return TestClient(app, base_url="http://localhost:7480", follow_redirects=False)
