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
        workers: how many to start at once.
        options: more of Java's, for all of them.
        remembers: whether a master that is started again knows workers and applications.
    """

    def __init__(
        self, folder: Path, *, workers: int = WORKERS, options: Sequence[str] = (), remembers: bool = False
    ) -> None:
        self._folder, self._port, self._options = folder, free_port(), list(options)
        self._numbers = 0
        self._workers: list[subprocess.Popen[bytes]] = []
        self._leaving: list[subprocess.Popen[bytes]] = []
        self._recovery = ["-Dspark.deploy.recoveryMode=FILESYSTEM", f"-Dspark.deploy.recoveryDirectory={folder}/known"]
        self._remembers = remembers
        self._master = self.start_master()
        for _ in range(workers):
            self.start_worker()

    def start_master(self) -> subprocess.Popen[bytes]:
        """Starts the master, for the first time or once it was killed, on the same port; returns once it listens."""
        arguments = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
        options = ["-Dspark.deploy.maxExecutorRetries=-1", *(self._recovery if self._remembers else [])]
        self._master = self._start("master", options, "org.apache.spark.deploy.master.Master", arguments)
        if not await_true(self._is_listening, START_TIMEOUT_S):
            self.close()
            raise RuntimeError(f"the master did not start:\n{(self._folder / 'master.log').read_text()[-2000:]}")
        return self._master

    def start_worker(self) -> None:
        """Starts one more worker, of one core."""
        self._numbers += 1
        folder = self._folder / f"work-{self._numbers}"
        resources = ["--cores", "1", "--memory", "600m", "--work-dir", str(folder)]
        arguments = ["--host", "127.0.0.1", "--webui-port", "0", *resources, self.master]
        name, options = f"worker-{self._numbers}", ["-Dspark.worker.cleanup.enabled=true"]
        self._workers.append(self._start(name, options, "org.apache.spark.deploy.worker.Worker", arguments))

    def kill_master(self) -> None:
        """kill -9 of the master."""
        self._master.kill()
        self._master.wait()

    def kill_worker(self) -> None:
        """kill -9 of the oldest worker, and of the executors below it, as when a machine goes."""
        worker = self._workers.pop(0)
        family = descendants_of(worker.pid)
        worker.kill()
        worker.wait()
        for pid in family:
            send(pid, signal.SIGKILL)

    def decommission_worker(self) -> None:
        """Asks the oldest worker to leave in peace."""
        worker = self._workers.pop(0)
        self._leaving.append(worker)
        send(worker.pid, signal.SIGPWR)

    @property
    def master(self) -> str:
        """The master's address."""
        return f"spark://127.0.0.1:{self._port}"

    @property
    def worker_pids(self) -> Sequence[int]:
        """Spark's workers; executors and their Python workers are below them."""
        return [process.pid for process in self._workers]

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
        processes = [*self._workers, *self._leaving, self._master]
        family = [child for process in processes for child in descendants_of(process.pid)]
        for process in processes:
            process.kill()
            process.wait()
        for pid in family:
            send(pid, signal.SIGKILL)

    def _start(self, name: str, options: list[str], main_class: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        found = importlib.util.find_spec("pyspark")
        assert found is not None
        assert found.origin is not None
        home = Path(found.origin).parent
        java = shutil.which("java", path=os.environ.get("JAVA_HOME", "") + "/bin") or shutil.which("java")
        assert java is not None
        opens = "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"
        own_options = ["-Xmx256m", opens, *options, *self._options]
        command = [java, *own_options, "-cp", f"{home}/jars/*", main_class, *arguments]
        (scala,) = (home / "jars").glob("scala-library-*.jar")
        version = ".".join(scala.stem.split("-")[-1].split(".")[:2])  # the workers look for it where sources are built
        own = {
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": version,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        environment = {**os.environ, **own}
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _is_listening(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self._port)) == 0
