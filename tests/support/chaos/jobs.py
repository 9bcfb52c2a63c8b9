"""`txbatch run` as a real process on the embedded server, and the means to kill it and to look on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.keys import Keys
from state.redis_server.embedded import socket_path_of
from tests.support.chaos.nemesis.processes import marked, send

REPOSITORY = Path(__file__).resolve().parents[3]
MARK = "TXBATCH_CHAOS"
POLL_S = 0.01
FORBIDDEN_WORDS = ("Traceback", "most recent call last")


class Job:
    """One `txbatch run … --json`, or another command that runs a topology.

    Args:
        output: what it writes goes to two files of this name, ``.out`` and ``.err``.
        mark: in the environment of it and all below it, so that they are found again.
        arguments: after the command.
        command: of ``txbatch``.
    """

    def __init__(self, output: Path, mark: str, arguments: list[str], command: tuple[str, ...] = ("run",)) -> None:
        self._output = output
        line = [sys.executable, "-m", "coordinator.operating.cli", *command, *arguments, "--json"]
        environment = os.environ | {MARK: mark}
        with output.with_suffix(".out").open("wb") as out, output.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(
                line, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        self.started_s = time.monotonic()

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9 of the driver and of nothing else."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Sends the driver a signal."""
        os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> int:
        """Waits for its end and returns the exit code."""
        return self._process.wait(timeout_s)

    def said(self) -> dict[str, Any]:
        """The JSON line of a run that has ended well."""
        (line,) = self._output.with_suffix(".out").read_text(encoding="utf-8").splitlines()
        said: dict[str, Any] = json.loads(line)
        return said

    def complaint(self) -> str:
        """What it wrote to standard error."""
        return self._output.with_suffix(".err").read_text(encoding="utf-8", errors="replace")


@dataclass
class Site:
    """A folder with an embedded server's data, and the jobs that were started on it.

    Attributes:
        folder: for the data directory and the jobs' output.
        topology_id: of the jobs.
        arguments: of every job, after its command.
        timeout_s: the longest wait for anything.
        command: of ``txbatch``, for every job.
    """

    folder: Path
    topology_id: str
    arguments: list[str]
    timeout_s: float = 120.0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    jobs: list[Job] = field(default_factory=list)
    command: tuple[str, ...] = ("run",)

    @property
    def data_dir(self) -> Path:
        return (self.folder / "data").resolve()

    def start(self, *more: str) -> Job:
        """Starts one more job on the data directory."""
        output = self.folder / f"{'-'.join(self.command)}-{len(self.jobs) + 1}"
        engine = () if "--engine" in more else ("--master", "local[2]")
        given = [*self.arguments, "--data-dir", str(self.data_dir), *engine, *more]
        self.jobs.append(Job(output, self.mark, given, self.command))
        return self.jobs[-1]

    def finish(self, *more: str) -> dict[str, Any]:
        """Runs one more job to its end, which has to be a good one, and returns what it said."""
        job = self.start(*more)
        code = job.wait(self.timeout_s)
        if code != 0:
            raise AssertionError(f"job ended with code {code}:\n{job.complaint()}")
        return job.said()

    def client(self) -> redis.Redis:
        """A client of the embedded server, wherever that is now; it never retries."""
        path = str(socket_path_of(self.data_dir))
        return redis.Redis(unix_socket_path=path, retry=Retry(NoBackoff(), 0), socket_timeout=30.0)

    def committed(self) -> int | None:
        """The last committed txid; None while nobody answers or nothing is stored."""
        try:
            with self.client() as client:
                found: Any = client.hget(Keys(self.topology_id).control, "committed")
        except redis.RedisError:
            return None
        return None if found is None else int(found)

    def snapshot(self, command: str, state_name: str) -> tuple[int, Any] | None:
        """Last committed txid and a key's content, in one atomic step; None while nobody answers."""
        keys = Keys(self.topology_id)
        try:
            with self.client() as client, client.pipeline(transaction=True) as pipeline:
                pipeline.hget(keys.control, "committed")
                pipeline.execute_command(command, keys.state(state_name))
                committed, content = pipeline.execute()
        except redis.RedisError:
            return None
        return int(committed or 0), content

    def leftovers(self) -> list[int]:
        """Processes that our jobs have started, directly or not, and that still run."""
        return marked(MARK, self.mark)

    def close(self) -> None:
        """Ends what may still run, each process by its own id."""
        for job in self.jobs:
            if job.is_running():
                job.kill()
        for pid in self.leftovers():
            send(pid, signal.SIGKILL)


def await_true(condition: Callable[[], object], timeout_s: float) -> bool:
    """Returns as soon as it is so, or False after the time; there is no event to wait for."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


@dataclass(frozen=True)
class Kill:
    """One kill -9 of a driver.

    Attributes:
        moment: ``start``, a drawn time after the start, or ``commits``, at a drawn number of commits.
        after_s: how long the driver had run.
        committed: last committed txid shortly before, None if nothing was stored or nobody answered.
        in_vain: the driver had come to its end before.
    """

    moment: str
    after_s: float
    committed: int | None
    in_vain: bool

    def __str__(self) -> str:
        seen = "nothing stored yet" if self.committed is None else f"txid {self.committed} committed"
        return f"{self.moment:8} after {self.after_s:6.2f} s, {seen}{', had ended before' if self.in_vain else ''}"


def kill_at_random_moments(site: Site, *, kills: int, total: int, draw: random.Random) -> list[Kill]:
    """Starts a job and kills its driver, so many times, each start directly after the last kill.

    Args:
        site: where.
        kills: how often.
        total: how many transactions there are.
        draw: decides the moments.
    """
    done = []
    committed = 0
    for number in range(kills):
        job = site.start()
        if draw.random() < 0.3:
            moment, target, delay_s = "start", 0, draw.uniform(0.0, 6.0)
        else:
            share = (total - committed) / (kills - number + 1)
            moment, target, delay_s = "commits", committed + int(draw.uniform(0.0, 1.5) * share), draw.uniform(0.0, 0.3)
        if moment == "commits":
            await_true(lambda: not job.is_running() or (site.committed() or 0) > target, site.timeout_s)  # noqa: B023
        await_true(lambda: not job.is_running(), delay_s)  # noqa: B023 - called before the next turn
        seen = site.committed()
        committed = max(committed, seen or 0)
        in_vain = not job.is_running()
        if not in_vain:
            job.kill()
        done.append(Kill(moment, time.monotonic() - job.started_s, seen, in_vain))
    return done


def print_summary(title: str, facts: Mapping[str, Any]) -> None:
    """One fact a line."""
    print(f"\n{title}")  # noqa: T201 - a command's output
    for name, value in facts.items():
        print(f"  {name}: {value}")  # noqa: T201
