"""A real Prometheus that scrapes one target: Debian's, on loopback, in a temporary folder, ended by its process."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

UNPACKED = Path(__file__).resolve().parents[3] / ".programs" / "usr" / "bin"
TIMEOUT_S = 60.0
LISTENING = re.compile(r'msg="Listening on".* address=(\S+)')


def program(name: str) -> str:
    """The path of ``prometheus`` or ``promtool``; skips the test where there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    if found is None:
        pytest.skip(f"{name} is missing; run: tools/bootstrap.sh prometheus")
    return found


class Prometheus:
    """Asks a running Prometheus."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, query: str) -> list[float]:
        """The values of an instant query, in any order."""
        url = f"http://{self._address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return [float(found["value"][1]) for found in told["data"]["result"]]

    def await_value(self, query: str, value: float) -> None:
        """Returns when the query has this one value; asked every quarter of a second, since nothing announces it."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := self.query(query)) != [value]:
            if time.monotonic() > deadline:
                pytest.fail(f"{query} is {found}, expected {value}")
            time.sleep(0.25)


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes ``host:port`` twice a second as job "txbatch", with the alert rules of deploy/."""
    folder.mkdir()
    rules = Path(__file__).resolve().parents[3] / "deploy" / "prometheus" / "alerts.yml"
    config = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "txbatch", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    log = folder / "log.txt"
    command = [program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], cwd=folder, stderr=output)
    try:
        yield Prometheus(_address(process, log))
    finally:
        process.terminate()
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        said = log.read_text(encoding="utf-8")
        found = LISTENING.search(said)
        if found is not None and "Server is ready" in said:
            return found[1]
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"prometheus did not start:\n{said}")
        time.sleep(0.05)
