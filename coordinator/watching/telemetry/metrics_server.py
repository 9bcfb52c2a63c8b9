"""Serves metrics and health of a run over HTTP, from a thread of its own, for as long as the run lasts."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from coordinator.watching.run_observer import Observation
from coordinator.watching.telemetry.health import Health, ProbeAnswer
from coordinator.watching.telemetry.run_metrics import RunMetrics, prometheus_client
from state.errors import TopologyError

DEFAULT_HOST = "127.0.0.1"
REQUEST_TIMEOUT_S = 10.0
"""A client that sends nothing for this long is disconnected."""
TEXT = "text/plain; charset=utf-8"
INDEX = "txbatch: /metrics for Prometheus, /healthz and /readyz for probes\n"
StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


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
        self._metrics, self._health = RunMetrics(topology_id, clock, wall_clock), Health(clock)
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None

    def __call__(self, observation: Observation) -> None:
        """Takes what has happened; see `coordinator.watching.run_observer`."""
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
        app = _application(self._metrics, self._health)
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


def _application(collected: RunMetrics, health: Health) -> Application:
    """Returns the WSGI application with /metrics, /healthz and /readyz; raises what `prometheus_client` raises."""
    client = prometheus_client()
    registry = client.CollectorRegistry()
    registry.register(collected)
    client.ProcessCollector(registry=registry)
    metrics = client.make_wsgi_app(registry)

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _text(start_response, "405 Method Not Allowed", "only GET and HEAD\n")
        match environ.get("PATH_INFO", "/").rstrip("/"):
            case "/metrics":
                answered: Iterable[bytes] = metrics(environ, start_response)
                return answered
            case "/healthz":
                return _answer(start_response, health.alive())
            case "/readyz":
                return _answer(start_response, health.ready())
            case "":
                return _text(start_response, "200 OK", INDEX)
            case _:
                return _text(start_response, "404 Not Found", INDEX)

    return answer


def _answer(start_response: StartResponse, answer: ProbeAnswer) -> Iterable[bytes]:
    status = "200 OK" if answer.is_good else "503 Service Unavailable"
    return _text(start_response, status, f"{answer.reason}\n")


def _text(start_response: StartResponse, status: str, text: str) -> Iterable[bytes]:
    body = text.encode()
    start_response(status, [("Content-Type", TEXT), ("Content-Length", str(len(body)))])
    return [body]
