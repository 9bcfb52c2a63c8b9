"""A standalone Spark cluster of our own on loopback: a master and two workers, from the jars that pyspark ships."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.chaos.jobs import REPOSITORY, await_true
from tests.support.chaos.nemesis.processes import command_of, descendants_of, send
from tests.support.chaos.nemesis.servers import free_port

WORKERS = 2
START_TIMEOUT_S = 60.0
SETTINGS = (
    "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.executor.memory=512m",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.cores.max=2",
    "spark.speculation=true",
    "spark.speculation.interval=50ms",
    "spark.speculation.multiplier=1.5",
    "spark.speculation.quantile=0.3",
    "spark.speculation.minTaskRuntime=20ms",
    "spark.shuffle.io.maxRetries=1",
    "spark.shuffle.io.retryWait=1s",
    f"spark.executorEnv.PYTHONPATH={REPOSITORY}",
)
"""Settings of a driver: eager speculation, so that many tasks have a twin."""


class StandaloneCluster:
    """Master and workers as processes; they end with `close`.

    Args:
        folder: for their work directories and logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self._processes: list[subprocess.Popen[bytes]] = []
        master = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        self._start("master", "-Dspark.deploy.maxExecutorRetries=-1", "org.apache.spark.deploy.master.Master", master)
        if not await_true(self._is_listening, START_TIMEOUT_S):
            self.close()
            raise RuntimeError(f"the master did not start:\n{(folder / 'master.log').read_text()[-2000:]}")
        for number in range(WORKERS):
            resources = ["--cores", "1", "--memory", "600m", "--work-dir", str(folder / f"work-{number}")]
            arguments = ["--host", "127.0.0.1", "--webui-port", "0", *resources, self.master]
            self._start(
                f"worker-{number}",
                "-Dspark.worker.cleanup.enabled=true",
                "org.apache.spark.deploy.worker.Worker",
                arguments,
            )

    @property
    def master(self) -> str:
        """The master's address."""
        return f"spark://127.0.0.1:{self._port}"

    @property
    def worker_pids(self) -> Sequence[int]:
        """Spark's workers; executors and their Python workers are below them."""
        return [process.pid for process in self._processes[1:]]

    def executors(self) -> list[int]:
        """The executors that run now."""
        return [
            child
            for worker in self.worker_pids
            for child in descendants_of(worker)
            if any("CoarseGrainedExecutorBackend" in part for part in command_of(child))
        ]

    def close(self) -> None:
        """Ends all of them, and what they have started."""
        family = [child for process in self._processes for child in descendants_of(process.pid)]
        for process in self._processes:
            process.kill()
            process.wait()
        for pid in family:
            send(pid, signal.SIGKILL)

    def _start(self, name: str, option: str, main_class: str, arguments: list[str]) -> None:
        found = importlib.util.find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        home = Path(found.origin).parent
        java = shutil.which("java", path=os.environ.get("JAVA_HOME", "") + "/bin") or shutil.which("java")
        assert java is not None
        opens = "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
        command = [java, "-Xmx256m", opens, option, "-cp", f"{home}/jars/*", main_class, *arguments]
        (scala,) = (home / "jars").glob("scala-library-*.jar")
        version = ".".join(scala.stem.split("-")[-1].split(".")[:2])  # the workers look for it where sources are built
        own = {
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": version,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        environment = {**os.environ, **own}
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    command, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            )

    def _is_listening(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self._port)) == 0
