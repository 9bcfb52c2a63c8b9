"""A Spark Connect server on this machine: a process of its own, on a port that is free."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")
START_TIMEOUT_S = 60.0
REPOSITORY = Path(__file__).parents[3]


class ConnectServer:
    """Runs until `kill`.

    Args:
        folder: its working folder, where workers find none of our modules.
        settings: of Spark.

    Attributes:
        address: as in ``sc://127.0.0.1:4711``.
        pid: of its Java process.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        home = Path(str(pyspark.__file__)).parent
        given = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.scheduler.mode": "FAIR",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.artifact.isolation.enabled": "true",
            **settings,
        }
        options = [part for name, value in given.items() for part in ("--conf", f"{name}={value}")]
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g", *options]
        self._log = folder / "connect-server.log"
        environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
        modules = folder / "modules"  # what tests import is there, but none of our packages: those are shipped
        modules.mkdir()
        for name in ("tests", "benchmarks"):
            (modules / name).symlink_to(REPOSITORY / name)
        environment["PYTHONPATH"] = str(modules)
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [*command, "--class", CLASS, "spark-internal"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.pid = self._process.pid
        self.address = f"sc://127.0.0.1:{self._port()}"

    def kill(self) -> None:
        """Ends it at once; its workers end with it."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _port(self) -> int:
        """Returns its port once it listens; there is no event to wait for, so its log is read again every 50 ms."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if (started := STARTED.search(self._log.read_text(errors="replace"))) is not None:
                return int(started[1])
            time.sleep(0.05)
        self.kill()
        raise AssertionError(f"the Spark Connect server did not start:\n{self._log.read_text(errors='replace')}")
