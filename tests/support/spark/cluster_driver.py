"""A driver on `local-cluster[2,1,1024]` that kills an executor between the two jobs of a wave; run as a script.

    python cluster_driver.py REPOSITORY FOLDER REDIS_URL

FOLDER holds the user's module. What came of each topology goes to standard output as one line of JSON. The
executors are processes of their own and know neither folder.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRANSACTIONS, SIZE = 12, 40
CASES = {
    "round_robin": "RoundRobin",
    "random": "RandomMark",
    "in_order": "OrderMark",
}
"""Topology id -> bolt."""
NOTICE_TIMEOUT_S = 30.0
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}


def executors() -> dict[str, int]:
    """Executor id -> process id, of those below this process."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            arguments = (folder / "cmdline").read_bytes().decode().split("\0")
            if "--executor-id" in arguments and os.getpid() in _ancestors(int(folder.name)):
                found[arguments[arguments.index("--executor-id") + 1]] = int(folder.name)
        except (OSError, ValueError):
            continue  # no process, or one that has just ended
    return found


def _ancestors(pid: int) -> list[int]:
    line = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
        line.append(pid)
    return line


class Killer:
    """Kills the oldest executor before the first commit phase of a run."""

    def __init__(self, context: Any, *, waits: bool) -> None:
        self.context, self.waits, self.killed = context, waits, ""

    def __call__(self) -> None:
        if self.killed:
            return
        living = executors()
        self.killed = min(living, key=int)
        before = known_executors(self.context)
        os.kill(living[self.killed], signal.SIGKILL)
        if self.waits:  # else job 2 finds out by itself when it fetches
            await_until(lambda: known_executors(self.context) < before)


def known_executors(context: Any) -> int:
    """How many executors the driver believes in."""
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


def await_until(condition: Callable[[], bool]) -> None:
    """Returns when it is so; there is no event to wait for."""
    deadline = time.monotonic() + NOTICE_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


def main(repository: str, folder: str, redis_url: str) -> None:
    """Runs every case, each with a kill."""
    sys.path[:0] = [repository, folder]
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    from coordinator.engines.spark.session import open_context
    from coordinator.engines.waves import wave

    context = open_context("cluster", "local-cluster[2,1,1024]", SETTINGS)
    commit = wave.Wave.commit
    results = {}
    for topology_id in CASES:
        killer = Killer(context, waits=topology_id != "round_robin")

        def killing_commit(self: Any, *given: Any, killer: Killer = killer, **named: Any) -> Any:
            killer()
            return commit(self, *given, **named)

        wave.Wave.commit = killing_commit  # type: ignore[method-assign]
        await_until(lambda: known_executors(context) == 2)
        results[topology_id] = _run(topology_id, context, redis_url, Path(folder)) | {"killed": killer.killed}
    context.stop()
    print(json.dumps(results))  # noqa: T201 - that is what it is for


def _run(topology_id: str, context: Any, redis_url: str, folder: Path) -> dict[str, Any]:
    import shaky_bolts  # type: ignore[import-not-found] # in the folder

    from coordinator.run import run
    from coordinator.transactional.options import RunOptions

    notes = folder / f"{topology_id}.notes"
    work = getattr(shaky_bolts, CASES[topology_id])(notes)
    started_s = time.monotonic()
    topology = shaky_bolts.topology(topology_id, work, TRANSACTIONS, SIZE)
    # between two jobs somebody can be killed
    statistics = run(topology, spark=context, redis_url=redis_url, options=RunOptions(early_commit=False))
    return {
        **statistics.to_dict(topology_id),
        "wall_s": time.monotonic() - started_s,
        "work": [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
