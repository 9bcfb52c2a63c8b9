"""``txbatch`` processes in a folder of jobs, as a user or a service manager starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from state.redis_server.embedded import EmbeddedServer
from tests.support.cli.jobs import JobFolder

TIMEOUT_S = 120.0


class Command:
    """One ``txbatch`` process in a folder, its standard error kept in a file."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / f"log-{time.monotonic_ns()}.txt"
        command = [str(Path(sys.executable).with_name("txbatch")), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
            )

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def await_words(self, words: str) -> None:
        """Returns when they stand on standard error; looked at every 50 ms, since nothing announces them."""
        deadline = time.monotonic() + TIMEOUT_S
        while words not in self.said():
            if self.process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{words!r} was not said; {self.process.returncode=}:\n{self.said()}")
            time.sleep(0.05)

    def ended(self) -> tuple[int, str]:
        """Exit code and standard output."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, output


@contextmanager
def started(folder: JobFolder, *arguments: str) -> Iterator[Command]:
    command = Command(folder.path, "run", *arguments, "--master", "local[2]")
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()


def ran(folder: JobFolder, *arguments: str) -> tuple[int, str, str]:
    with started(folder, *arguments) as command:
        code, output = command.ended()
        return code, output, command.said()


def killed_and_ended(folder: Path, client: Any, topology_id: str, *arguments: str, after: int = 100) -> None:
    """Runs a topology on the engine local, kills it half-way, and runs it to its end."""
    key = f"{{{topology_id}}}:txbatch:control"
    first = Command(folder, "run", *arguments, "--engine", "local")
    while first.process.poll() is None and int(client.hget(key, "committed") or 0) < after:
        time.sleep(0.005)
    first.process.kill()
    assert first.ended()[0] == -signal.SIGKILL, first.said()
    assert int(client.hget(key, "committed") or 0) >= after
    second = Command(folder, "run", *arguments, "--engine", "local")
    assert second.ended()[0] == 0, second.said()


def stored(folder: JobFolder, key: str, data_dir: str = ".txbatch") -> dict[str, int]:
    with EmbeddedServer(folder.path / data_dir) as server, redis.Redis.from_url(server.url) as client:
        found: Any = client.hgetall(key)
    return {field.decode(): int(value) for field, value in found.items()}
