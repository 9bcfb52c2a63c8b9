"""One small server answers Prometheus and probes for as long as the run lasts, and says why it cannot."""

from __future__ import annotations

import socket
import sys
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select
from time import monotonic
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator.serving import http_server
from coordinator.watching.run_observer import GroupCommitted, RunBegan, RunEnded, TurnEnded
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.metrics_server import MetricsServer
from state.attempt import TransactionAttempt
from state.errors import TopologyError


def got(server, path, method="GET"):
    request = urllib.request.Request(server.url.replace("/metrics", path), method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def begin(server, **figures):
    server(RunBegan("lines", RunStatistics(**figures), 30.0))


def test_prometheus_reads_what_the_run_has_counted():
    with MetricsServer("lines", port=0) as server:
        begin(server, committed=12, last_txid=40)
        server(GroupCommitted((TransactionAttempt(40, 1),), 0.02, 1, 1))
        server(RunEnded(None))
        status, text = got(server, "/metrics")
    samples = {
        (sample.name, sample.labels.get("le")): sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert status == 200
    committed = samples["txbatch_committed_transactions_total", None]
    assert (committed.value, committed.labels) == (12.0, {"topology": "lines"})
    assert samples["txbatch_commit_seconds_bucket", "0.025"].value == 1
    assert samples["process_resident_memory_bytes", None].value > 0


def test_probes_answer_before_the_run_begins_while_it_runs_and_after_its_end():
    with MetricsServer("lines", port=0) as server:
        assert got(server, "/healthz") == (200, "starting\n")
        assert got(server, "/readyz")[0] == 503
        begin(server)
        server(TurnEnded(is_idle=True))
        assert got(server, "/readyz") == (200, "running\n")
        assert got(server, "/healthz")[1].startswith("last turn 0.")
        server(RunEnded(None))
        assert got(server, "/readyz") == (503, "the run has ended\n")


def test_other_paths_and_methods_are_refused():
    with MetricsServer("lines", port=0) as server:
        assert got(server, "/")[0] == 200
        assert got(server, "/admin")[0] == 404
        assert got(server, "/healthz", "POST")[0] == 405


def test_the_server_ends_with_the_run():
    with MetricsServer("lines", port=0) as server:
        url = server.url
    with pytest.raises(URLError):
        urllib.request.urlopen(url, timeout=10)


def test_a_port_in_use_and_a_host_that_is_another_machines_are_refused_with_the_remedy():
    with MetricsServer("lines", port=0) as first:
        port = int(first.url.split(":")[2].partition("/")[0])
        with pytest.raises(TopologyError, match=rf"127.0.0.1 port {port}: .*in use.*; choose another port, or 0"):
            MetricsServer("lines", port=port).__enter__()
    with pytest.raises(TopologyError, match=r"203.0.113.1 port 0: .*; give a name or an address of this machine"):
        MetricsServer("lines", host="203.0.113.1", port=0).__enter__()


@pytest.mark.parametrize("missing", ["prometheus_client", "coordinator.serving.http_server"])
def test_without_the_library_the_error_names_the_extra(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(TopologyError, match=rf"metrics need {missing}, .*pip install 'txbatch\[metrics\]'"):
        MetricsServer("lines", port=0).__enter__()


def test_another_site_cannot_read_a_runs_metrics_through_a_browser():
    with MetricsServer("lines", port=0) as server:
        request = urllib.request.Request(server.url, headers={"Host": "evil.example"})
        with pytest.raises(HTTPError, match="421") as caught:
            urllib.request.urlopen(request, timeout=10)
        with caught.value:
            assert caught.value.read() == b"this server answers only to localhost; see --metrics-host\n"
        request = urllib.request.Request(server.url, headers={"Host": "LOCALHOST:80"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


def connections_held(port):
    """The server's ends of connections that are not closed: each takes a descriptor of the run."""
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    established, close_wait = "01", "08"
    return sum(row[1].endswith(f":{port:04X}") and row[3] in {established, close_wait} for row in rows)


def test_silent_connections_take_few_descriptors_of_the_run_and_are_hung_up_on(monkeypatch, capfd):
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT_S", 0.5)
    with MetricsServer("lines", port=0) as server, ExitStack() as open_ones:
        assert got(server, "/healthz")[0] == 200
        address = urlsplit(server.url)
        place = (address.hostname or "", address.port or 0)
        clients = [open_ones.enter_context(socket.create_connection(place)) for _ in range(300)]
        for number, client in enumerate(clients[:40]):
            with suppress(OSError):
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: loc" if number % 2 else b"\x00nonsense\r\n\r\n")
        for client in clients:  # each is closed from the other side, sooner or later
            client.settimeout(10)
            with suppress(ConnectionError):
                while client.recv(4096):
                    pass
        deadline = monotonic() + 10
        while (held := connections_held(place[1])) and monotonic() < deadline:  # a client sees the end before it is one
            select([], [], [], 0.01)
        assert held == 0, "the run has all of its descriptors back"
        assert got(server, "/healthz")[0] == 200
    assert capfd.readouterr().err == ""
