"""Driver processes as the nemesis handles them: forked ones without Spark, and whole programs with it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.chaos.jobs import REPOSITORY, await_true
from tests.support.chaos.nemesis.driver_spec import DriverSpec, Notes
from tests.support.chaos.nemesis.processes import descendants_of, marked, send

MARK = "TXBATCH_NEMESIS"
FORK_TIMEOUT_S = 60.0
KILLED = -int(signal.SIGKILL)

_ENDINGS = {
    "FencedError": "fenced",
    "REGRESSED": "regressed",
    "returned to an earlier state": "regressed",
    "has lost writes": "regressed",
    "is out of memory": "out of memory",
    "cannot save to disk": "disk full",
    "is a replica": "replica",
    "StateUnreachableError": "unreachable",
    "StaleReadError": "overtaken",
    "this attempt was overtaken": "overtaken",
    "EngineError": "engine",
}
"""Text in what a driver says at its end -> our word for it."""


@dataclass
class Driver:
    """One driver process.

    Attributes:
        spec: what it was told.
        pid: its process.
        asked_s: when its start was asked for, by the monotonic clock.
        code: its exit code, minus a signal's number if it was killed; None while it runs.
        was_killed: whether we have killed it.
        may_be_fenced: whether a newer driver was started while this one ran.
        recovers: whether a driver before it was killed.
        is_zombie: whether it is stopped so that another one takes over.
    """

    spec: DriverSpec
    pid: int
    asked_s: float
    code: int | None = None
    was_killed: bool = False
    may_be_fenced: bool = False
    recovers: bool = False
    is_zombie: bool = False
    process: subprocess.Popen[bytes] | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def is_running(self) -> bool:
        """Whether the process exists."""
        if self.process is not None and self.code is None:
            self.code = self.process.poll()
        return self.code is None

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within the time."""
        if self.process is None:
            return self.ended.wait(timeout_s)
        return await_true(lambda: not self.is_running(), timeout_s)

    def kill(self) -> None:
        """kill -9 of the driver alone."""
        self.was_killed = True
        send(self.pid, signal.SIGKILL)
        if self.process is not None:
            self.code = self.process.wait()
        self.ended.wait(FORK_TIMEOUT_S if self.process is None else 0)

    def freeze(self) -> None:
        """SIGSTOP."""
        send(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        send(self.pid, signal.SIGCONT)

    def is_frozen(self) -> bool:
        """Whether the kernel has stopped it."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return False
        return status == "T"

    def family(self) -> list[int]:
        """All processes below it."""
        return descendants_of(self.pid)

    def notes(self) -> Notes:
        """What it has noted of itself."""
        return Notes(self.spec.notes_path)

    def ending(self) -> str:
        """How it has ended, in a word or two; the whole story if that is none we know."""
        noted = self.notes().all()
        if self.code == KILLED and (self.was_killed or "fate" in noted):
            return "killed"
        said: str = noted["ended"]["text"] if "ended" in noted else ""
        if self.code == 0 and said == "done":
            return "done"
        for text, word in _ENDINGS.items():
            if text in said:
                return word
        return f"code {self.code}: {said or self._log()[-1500:]}"

    def _log(self) -> str:
        log = Path(f"{self.spec.notes_path}.log")
        return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


class Nursery:
    """Starts drivers without Spark, by a fork each; see `nursery`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.chaos.nemesis.nursery"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._started: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._drivers: dict[int, Driver] = {}
        self._early: dict[int, int] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._listen, name="nursery", daemon=True)
        self._thread.start()

    def start(self, spec: DriverSpec) -> Driver:
        """Starts a driver."""
        asked_s = time.monotonic()
        assert self._process.stdin is not None
        self._process.stdin.write(f"{spec.to_line()}\n".encode())
        self._process.stdin.flush()
        pid = self._started.get(timeout=FORK_TIMEOUT_S)
        driver = Driver(spec, pid, asked_s)
        with self._lock:
            self._drivers[pid] = driver
            if pid in self._early:
                self._end(driver, self._early.pop(pid))
        return driver

    def close(self) -> None:
        """Ends all drivers and the nursery."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, pid, *code = line.decode().split()
            if word == "started":
                self._started.put(int(pid))
                continue
            with self._lock:
                driver = self._drivers.pop(int(pid), None)
                if driver is None:
                    self._early[int(pid)] = int(code[0])
                else:
                    self._end(driver, int(code[0]))

    @staticmethod
    def _end(driver: Driver, code: int) -> None:
        driver.code = code
        driver.ended.set()


class Programs:
    """Starts drivers with Spark, each a program of its own.

    Args:
        mark: in their environment and that of all below them, so that they are found again.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._drivers: list[Driver] = []

    def start(self, spec: DriverSpec) -> Driver:
        """Starts a driver."""
        environment = {
            **os.environ,
            MARK: self._mark,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(REPOSITORY),
        }
        asked_s = time.monotonic()
        with Path(f"{spec.notes_path}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.chaos.nemesis.driver_program", spec.to_line()],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._drivers.append(Driver(spec, process.pid, asked_s, process=process))
        return self._drivers[-1]

    def close(self) -> None:
        """Ends all drivers, and what they have left."""
        for driver in self._drivers:
            if driver.is_running():
                driver.kill()
        for pid in marked(MARK, self._mark):
            send(pid, signal.SIGKILL)
