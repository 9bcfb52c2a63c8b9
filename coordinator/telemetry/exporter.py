"""Hands a run's measures to prometheus_client, and answers probes, as one WSGI application."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coordinator.telemetry.health import Health, Verdict
from coordinator.telemetry.measures import Measure
from state.errors import TopologyError

MISSING = "metrics need prometheus_client, which is not installed; run: pip install 'txbatch[metrics]'"
TEXT = "text/plain; charset=utf-8"
INDEX = "txbatch: /metrics for Prometheus, /healthz and /readyz for probes\n"
StartResponse = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


def prometheus_client() -> Any:
    """Returns the library.

    Raises:
        TopologyError: it is not installed.
    """
    try:
        return importlib.import_module("prometheus_client")
    except ModuleNotFoundError as error:
        raise TopologyError(MISSING) from error


class RunCollector:
    """The collector that a `CollectorRegistry` asks for a run's measures, on any thread.

    Args:
        measures: returns the current ones.
        topology_id: the label of each sample.
    """

    def __init__(self, measures: Callable[[], Iterable[Measure]], topology_id: str) -> None:
        self._measures, self._topology_id = measures, topology_id

    def collect(self) -> Iterator[Any]:
        """Returns prometheus_client's form of the measures; called once for each scrape."""
        metric = importlib.import_module("prometheus_client.core").Metric
        for measure in self._measures():
            family = metric(measure.name, measure.help, measure.kind.value)
            for sample in measure.samples:
                labels = {"topology": self._topology_id, **sample.labels}
                family.add_sample(f"{measure.name}{sample.suffix}", labels, sample.value)
            yield family

    def describe(self) -> list[Any]:
        """Returns nothing: there are no measures before the run begins, and no other collector shares their names."""
        return []


def application(collector: RunCollector, health: Health) -> Application:
    """Returns an application with /metrics, /healthz and /readyz.

    Raises:
        TopologyError: prometheus_client is not installed.
    """
    client = prometheus_client()
    registry = client.CollectorRegistry()
    registry.register(collector)
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
                return _verdict(start_response, health.alive())
            case "/readyz":
                return _verdict(start_response, health.ready())
            case "":
                return _text(start_response, "200 OK", INDEX)
            case _:
                return _text(start_response, "404 Not Found", INDEX)

    return answer


def _verdict(start_response: StartResponse, verdict: Verdict) -> Iterable[bytes]:
    status = "200 OK" if verdict.is_good else "503 Service Unavailable"
    return _text(start_response, status, f"{verdict.reason}\n")


def _text(start_response: StartResponse, status: str, text: str) -> Iterable[bytes]:
    body = text.encode()
    start_response(status, [("Content-Type", TEXT), ("Content-Length", str(len(body)))])
    return [body]
