"""Measures txbatch once, in a process of its own: ``python -m benchmarks.txbatch_side CASE``."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis

from benchmarks.corpus import Corpus, copy_enough, count_first_lines_of_passes, load_corpus
from benchmarks.harness import percentile
from benchmarks.measurement import Result, TxbatchCase
from benchmarks.stopwatch import Stopwatch
from benchmarks.task_counts import with_tasks
from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples.word_count import topology
from state.redis_server.embedded import EmbeddedServer

if TYPE_CHECKING:
    from coordinator.transactional.coordinator import Coordinator
    from coordinator.watching.statistics.run_statistics import RunStatistics

TOPOLOGY_ID = "word_count"
COUNTS_KEY = f"{{{TOPOLOGY_ID}}}:counts"
"""More than any run reads; an unread file costs nothing."""
STEADY_AFTER_S = 5.0
"""The steady rate leaves out the time before, while workers start, the JVM compiles and the vocabulary is new."""


class Deadline:
    """Drains a run when its time is up."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._coordinator: Coordinator | None = None

    def start(self, coordinator: Coordinator) -> None:
        """Keeps the coordinator, when the run begins."""
        self._coordinator = coordinator

    def check(self, _: RunStatistics) -> None:
        """Drains the run once its time is up; the time counts from the first call."""
        now = time.monotonic()
        if self._ends is None:
            self._ends = now + self._seconds
        if now >= self._ends and self._coordinator is not None:
            self._coordinator.drain()


def measure(case: TxbatchCase) -> Result:
    """Runs the word count for a while and compares what the server holds with the independent count."""
    corpus = load_corpus(case.corpus)
    folder = Path(tempfile.mkdtemp(prefix="txbatch-", dir=case.work_dir))
    try:
        pattern = copy_enough(corpus, folder / "input", case.seconds)
        deadline, stopwatch = Deadline(case.seconds), Stopwatch()
        with EmbeddedServer(folder / "data") as server, stopwatch.installed():
            statistics = run(
                with_tasks(topology(pattern, case.lines, TOPOLOGY_ID), case.tasks),
                redis_url=server.url,
                master=case.master,
                conf=case.conf,
                options=RunOptions(max_spout_pending=case.window or None, commit_group_max=case.group),
                on_start=deadline.start,
                on_progress=deadline.check,
            )
            stored = read_counts(server.url, COUNTS_KEY)
    finally:
        shutil.rmtree(folder)
    expected = count_first_lines_of_passes(corpus, statistics.tuples)
    return Result(
        transactions=statistics.committed,
        tuples=statistics.tuples,
        words=expected.total(),
        seconds=statistics.seconds,
        latency_p50_ms=1000 * percentile(stopwatch.latencies, 50),
        latency_p99_ms=1000 * percentile(stopwatch.latencies, 99),
        commit_p50_ms=1000 * percentile(stopwatch.commits, 50),
        commit_p99_ms=1000 * percentile(stopwatch.commits, 99),
        is_exact=stored == expected,
        details={
            "steady_per_s": steady_rate(stopwatch.commit_times),
            "waves": statistics.waves,
            "commit_groups": statistics.commit_groups,
            "failed_attempts": statistics.failed_attempts,
        },
    )


def steady_rate(commit_times: list[tuple[float, int]]) -> float | None:
    """Returns transactions per second without the first seconds; None if nothing remains."""
    late = [entry for entry in commit_times if entry[0] >= commit_times[0][0] + STEADY_AFTER_S]
    if len(late) < 2:
        return None
    return sum(count for _, count in late[1:]) / (late[-1][0] - late[0][0])


def read_counts(url: str, key: str) -> dict[str, int]:
    """Returns a stored hash, read as any client would."""
    with redis.Redis.from_url(url, decode_responses=True, protocol=2) as client:
        return {word: int(count) for word, count in client.hgetall(key).items()}


class WarmRuns:
    """Word counts of a few seconds each, on one warm Spark context.

    Args:
        corpus: the text.
        pattern: glob of the repeated text.
        context: the Spark context.
        seconds: how long a run takes new transactions.
    """

    def __init__(self, corpus: Corpus, pattern: str, context: Any, seconds: float) -> None:
        self.corpus = corpus
        self._pattern, self._context, self._seconds = pattern, context, seconds
        self._numbers = count(1)

    def run(self, lines: int, redis_url: str, options: RunOptions) -> tuple[str, RunStatistics]:
        """Runs on empty state, and returns the key of the counts with the statistics."""
        topology_id = f"word_count_{next(self._numbers)}"
        deadline = Deadline(self._seconds)
        statistics = run(
            topology(self._pattern, lines, topology_id),
            redis_url=redis_url,
            spark=self._context,
            options=options,
            on_start=deadline.start,
            on_progress=deadline.check,
        )
        return f"{{{topology_id}}}:counts", statistics


@contextmanager
def warm_runs(name: str, corpus: Corpus, options: Namespace) -> Iterator[WarmRuns]:
    """Opens a Spark context and copies the input; both are gone after the block."""
    context = open_context(name, options.master, {})
    try:
        with tempfile.TemporaryDirectory(prefix="txbatch-benchmark-", dir=options.work_dir) as folder:
            pattern = copy_enough(corpus, Path(folder) / "input", options.seconds)
            yield WarmRuns(corpus, pattern, context, options.seconds)
    finally:
        stop_context(context)


if __name__ == "__main__":
    print(measure(TxbatchCase.from_json(sys.argv[1])).to_json())
