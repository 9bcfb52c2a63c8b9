"""Serves metrics and health of a run over HTTP, from a separate thread, while the run lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from coordinator.watching.run_observer import Observation
from coordinator.watching.telemetry.health import Health
from coordinator.watching.telemetry.run_metrics import MISSING, RunMetrics, prometheus_client
from state.errors import TopologyError

DEFAULT_HOST = "127.0.0.1"
INDEX = "txbatch: /metrics for Prometheus, /healthz and /readyz for probes\n"


class MetricsServer:
    """Observes a run, and answers /metrics, /healthz and /readyz while the ``with`` block lasts.

    From Python::

        with MetricsServer("word_count", port=9464) as metrics:
            run(topology, observers=[metrics])

    Entering the block binds the port, before Spark starts, so that probes are answered from the beginning.

    Args:
        topology_id: the label of every metric.
        port: the port to listen on; 0 takes a free one.
        host: the address to listen on; by default only this machine can connect.
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
        self._url = ""
        self._closing = ExitStack()

    def __call__(self, observation: Observation) -> None:
        """Takes in an observation; see `coordinator.watching.run_observer`."""
        self._health(observation)
        self._metrics(observation)

    @property
    def url(self) -> str:
        """The URL of the metrics, with the actual port; only inside the ``with`` block."""
        assert self._url, "the server has not started"
        return f"{self._url}metrics"

    def __enter__(self) -> Self:
        """Starts the server.

        Raises:
            TopologyError: a library is not installed, or the port cannot be bound.
        """
        metrics = _metrics_app(self._metrics)
        try:
            from coordinator.serving.guard import Guard, names_of
            from coordinator.serving.http_server import listening, server_of, url_of
        except ModuleNotFoundError as error:
            raise TopologyError(MISSING.format(module=error.name)) from error
        app = Guard(
            _application(metrics, self._health), names_of(self._host), what="this server", option="--metrics-host"
        )
        listener = self._closing.enter_context(listening("metrics", self._host, self._port))
        self._url = url_of(self._host, listener)
        server = server_of(app, log_level="critical")  # standard error belongs to the run
        thread = threading.Thread(target=server.run, args=([listener],), name="txbatch-metrics", daemon=True)
        thread.start()
        self._closing.callback(thread.join)
        self._closing.callback(setattr, server, "should_exit", True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.close()


def _metrics_app(collected: RunMetrics) -> Any:
    """Returns the application for /metrics; raises the errors of `prometheus_client`."""
    client = prometheus_client()
    registry = client.CollectorRegistry()
    registry.register(collected)
    client.ProcessCollector(registry=registry)
    app: Any = client.make_asgi_app(registry)
    return app


def _application(metrics: Any, health: Health) -> Any:
    from coordinator.serving.http_server import plain_text

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        match scope["path"].rstrip("/"):
            case "/metrics":
                app = metrics
            case "/healthz" | "/readyz" as path:
                found = health.alive() if path == "/healthz" else health.ready()
                app = plain_text(200 if found.is_good else 503, f"{found.reason}\n")
            case path:
                app = plain_text(404 if path else 200, INDEX)
        await app(scope, receive, send)

    return answer
