"""``txbatch ui`` as a process on a real server, and what it says before it serves anything."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.serving.guard import is_loopback
from tests.conftest import Backend
from tests.support.dashboard.stored import store_all
from tests.support.stores.builders import dump

TIMEOUT_S = 60.0


@contextmanager
def dashboard(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A dashboard of its own, and its address."""
    command = [str(Path(sys.executable).with_name("txbatch")), "ui", "--port", "0", "--json", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            if process.poll() is None:
                process.kill()


def got(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.redis
def test_it_shows_a_server_until_it_is_told_to_stop(redis_backend: Backend, tmp_path: Path) -> None:
    client = redis_backend.client()
    store_all(client)
    before = dump(client)
    with dashboard(tmp_path, "--redis", str(redis_backend.url)) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        status, page = got(address)
        assert (status, "words</a>" in page) == (200, True)
        assert got(f"{address}topologies/words")[0] == 200
        assert got(f"{address}topologies/words/transactions/17")[0] == 200
        assert got(f"{address}topologies/gone")[0] == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        assert process.communicate()[1] == ""
    assert dump(client) == before


@pytest.mark.redis
def test_a_taken_port_is_said(redis_backend: Backend, complaint) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = complaint(f"ui --redis {redis_backend.url} --port {port}")
    assert f"the dashboard cannot be served on 127.0.0.1 port {port}: " in said
    assert "choose another port, or 0 for a free one" in said


@pytest.mark.redis
def test_an_address_that_others_reach_is_warned_of(redis_backend: Backend, complaint) -> None:
    said = complaint(f"ui --redis {redis_backend.url} --host 203.0.113.1 --port 0")
    assert said.startswith("txbatch: warning: anyone who can reach 203.0.113.1 sees this dashboard")


def test_a_server_that_is_away_is_said_at_once(complaint) -> None:
    said = complaint("ui --redis redis://:secret@127.0.0.1:1/0", code=4)
    assert "server redis://127.0.0.1:1/0 did not answer" in said
    assert "secret" not in said


def test_a_folder_without_state_is_said(tmp_path: Path, complaint) -> None:
    assert "holds no state" in complaint(f"ui --data-dir {tmp_path}")


def test_a_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, complaint) -> None:
    hidden: dict[str, Any] = dict.fromkeys(("starlette", "uvicorn", "jinja2"))
    for name in [
        each for each in sys.modules if each.partition(".")[0] in hidden or each.startswith("coordinator.operating.ui")
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in hidden:
        monkeypatch.setitem(sys.modules, name, None)
    assert "which is not installed; run: pip install 'txbatch[ui]'" in complaint(f"ui --data-dir {tmp_path}")


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        *(("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("192.168.1.4", False), ("figures.example", False)),
    ],
)
def test_which_addresses_only_this_machine_reaches(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own
