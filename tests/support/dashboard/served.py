"""A dashboard that a browser can open: on a port of its own, over a server that can be killed, at a moment of ours."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from coordinator.operating.ui.dashboard import Pages, dashboard
from state.redis_admin.topology_reader import ANSWER_TIMEOUT_S
from state.redis_client.connection import connect
from tests.support.dashboard.opened import AT, reader_of


class Served:
    """A dashboard on a thread; it may be stopped and started again on the same port.

    Args:
        redis_url: of the server that it shows.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listens and answers."""
        if self._listener.fileno() < 0:
            self._listener = socket.create_server(("127.0.0.1", self.port))
        reader = reader_of(connect(self._redis_url, socket_timeout_s=ANSWER_TIMEOUT_S))
        app = dashboard(Pages(reader, clock=lambda: AT))
        config = uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listens no longer."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


@contextmanager
def served(redis_url: str) -> Iterator[Served]:
    """A dashboard that is running."""
    made = Served(redis_url)
    made.start()
    try:
        yield made
    finally:
        made.stop()
