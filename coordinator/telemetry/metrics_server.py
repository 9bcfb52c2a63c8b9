"""Serves metrics and health of a run over HTTP, from a thread of its own, for as long as the run lasts."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from coordinator.run_observer import Observation
from coordinator.telemetry.exporter import RunCollector, application
from coordinator.telemetry.health import Health
from coordinator.telemetry.run_metrics import RunMetrics
from state.errors import TopologyError

DEFAULT_HOST = "127.0.0.1"
REQUEST_TIMEOUT_S = 10.0
"""A client that sends nothing for this long is disconnected."""


class MetricsServer:
    """Observes a run, and answers /metrics, /healthz and /readyz while the ``with`` block lasts.

    From Python::

        with MetricsServer("word_count", port=9464) as metrics:
            run(topology, observers=[metrics])

    Entering the block binds the port, before Spark starts, so that probes are answered from the beginning.

    Args:
        topology_id: the label of every metric.
        port: to listen on; 0 takes a free one.
        host: to listen on; by default only this machine can connect.
        clock: seconds, monotonic.
        wall_clock: seconds since the epoch.
    """

    def __init__(
        self,
        topology_id: str,
        *,
        port: int,
        host: str = DEFAULT_HOST,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._host, self._port = host, port
        self._metrics, self._health = RunMetrics(clock, wall_clock), Health(clock)
        self._collector = RunCollector(self._metrics.measures, topology_id)
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.run_observer`."""
        self._health(observation)
        self._metrics(observation)

    @property
    def url(self) -> str:
        """Where the metrics are, with the port that was taken; only inside the ``with`` block."""
        assert self._server is not None, "the server has not started"
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._server.server_port}/metrics"

    def __enter__(self) -> Self:
        """Starts the server.

        Raises:
            TopologyError: prometheus_client is not installed, or the port cannot be bound.
        """
        app = application(self._collector, self._health)
        server_class = _ServerV6 if ":" in self._host else _Server
        try:
            self._server = make_server(self._host, self._port, app, server_class, _Handler)
        except (OSError, OverflowError) as error:
            raise TopologyError(
                f"metrics cannot be served on {self._host} port {self._port}: {error}; choose another port, or 0 for "
                "a free one"
            ) from error
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.1,), name="txbatch-metrics", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request on a thread of its own, for which the end of the run does not wait."""

    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        """Binds without asking the resolver for a name of this machine, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    """Says nothing: standard error belongs to the run."""

    timeout = REQUEST_TIMEOUT_S

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the library's name
