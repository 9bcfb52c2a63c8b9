"""A run of txbatch as a process of its own, to be killed: by pid, only what was started here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import redis

from state import EmbeddedServer

ROOT = Path(__file__).parents[2]
RUN_TIMEOUT_S = 600


class DriverProcess:
    """One ``txbatch run … --json`` on an embedded server.

    Args:
        target: ``MODULE:FACTORY``.
        data_dir: of the embedded server.
        parameters: of the factory.
        options: further options of the command.
    """

    def __init__(self, target: str, data_dir: Path, parameters: dict[str, Any], *options: str) -> None:
        given = [part for name, value in parameters.items() for part in ("-p", f"{name}={value}")]
        command = [sys.executable, "-m", "coordinator.cli", "run", target, *given]
        command += ["--data-dir", str(data_dir), "--master", "local[2]", "--json", *options]
        self._log = (data_dir.parent / "driver.log").open("a+", encoding="utf-8")
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def outlives(self, seconds: float) -> bool:
        """Waits so long for the run to end; whether it has not."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def kill(self) -> None:
        """kill -9: the driver has no chance to say or tidy anything."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(RUN_TIMEOUT_S)
        self._close()

    def result(self) -> tuple[int, dict[str, Any]]:
        """Waits for the end; exit code and the line of figures, empty if there was none."""
        output, _ = self._process.communicate(timeout=RUN_TIMEOUT_S)
        self._close()
        lines = output.strip().splitlines()
        return self._process.returncode, json.loads(lines[-1]) if lines else {}

    def _close(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


def stored_hash(data_dir: Path, key: str) -> dict[str, int]:
    """A hash of integers, read with a plain client."""
    with EmbeddedServer(data_dir) as server, redis.Redis.from_url(server.url, decode_responses=True) as client:
        return {field: int(value) for field, value in client.hgetall(key).items()}
