"""Measures Bytewax, one process a task: ``python -m benchmarks.suite.sides.bytewax_flow ASSIGNMENT``.

Each process is a dataflow of its own: its source takes every n-th transaction, a step counts its words, and the sink
adds them with one pipeline. Counts only add up, so nothing has to be exchanged between processes; that, lines that are
in memory already and no recovery store are its best settings, and better than what a job with keyed state would have.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bytewax.operators as op
import redis
from bytewax.dataflow import Dataflow
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import TestingSource, run_main

from benchmarks.corpus import load_corpus
from benchmarks.suite.cells import Assignment, Measurement
from benchmarks.suite.text_input import Lines
from benchmarks.suite.timing import MeasuredSpan
from benchmarks.txbatch_side import read_counts
from state.redis_server.embedded import EmbeddedServer

KEY = "counts"
WORKER = "--worker"


class Writes(StatelessSinkPartition[Any]):
    """Adds the counts of each transaction, and notes when."""

    def __init__(self, url: str, committed: list[tuple[int, float]], span: MeasuredSpan) -> None:
        self._client = redis.Redis.from_url(url, protocol=2)
        self._committed, self._span = committed, span

    def write_batch(self, items: list[Any]) -> None:
        for number, counts in items:
            with self._client.pipeline(transaction=False) as pipeline:
                for word, count in counts.items():
                    pipeline.hincrby(KEY, word, count)
                pipeline.execute()
            now_s = time.monotonic()
            self._committed.append((number, now_s))
            self._span.note(now_s, len(self._committed), 0)

    def close(self) -> None:
        self._client.close()


class RedisCounts(DynamicSink[Any]):
    """The sink.

    Args:
        url: of the server.
        committed: where to note (number of the transaction, when it was written).
        span: told of every transaction.
    """

    def __init__(self, url: str, committed: list[tuple[int, float]], span: MeasuredSpan) -> None:
        self._url, self._committed, self._span = url, committed, span

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Writes:
        return Writes(self._url, self._committed, self._span)


def work(assignment: Assignment, url: str, first: int) -> list[tuple[int, float]]:
    """Runs one process's dataflow and returns (number, time) of every transaction (child process).

    It runs to the end of its own span, which is never before the end of the span of all processes together.
    """
    cell = assignment.cell
    text = Lines.of(load_corpus(assignment.corpus))
    committed: list[tuple[int, float]] = []
    span = MeasuredSpan(assignment.warm_up_s, assignment.seconds)

    def transactions() -> Iterator[tuple[int, list[str]]]:
        number = first
        while span.end is None:
            yield number, text.batch(number, cell.tuples)
            number += cell.tasks

    def counted(item: tuple[int, list[str]]) -> tuple[int, Counter[str]]:
        counts: Counter[str] = Counter()
        for line in item[1]:
            counts.update(line.split())
        return item[0], counts

    flow = Dataflow("word_count")
    lines = op.input("lines", flow, TestingSource(transactions(), batch_size=1))
    op.output("redis", op.map("count", lines, counted), RedisCounts(url, committed, span))
    run_main(flow)
    return committed


def measure(assignment: Assignment) -> Measurement:
    """Runs all processes and compares what the server holds with an independent count."""
    with (
        tempfile.TemporaryDirectory(prefix="bytewax-", dir=assignment.work_dir) as folder,
        EmbeddedServer(Path(folder) / "data") as server,
    ):
        command = [
            sys.executable,
            "-m",
            "benchmarks.suite.sides.bytewax_flow",
            WORKER,
            assignment.to_json(),
            server.url,
        ]
        started = [
            subprocess.Popen([*command, str(first)], stdout=subprocess.PIPE, text=True)
            for first in range(assignment.cell.tasks)
        ]
        answers = [process.communicate()[0] for process in started]
        if any(process.returncode for process in started):
            raise RuntimeError("a Bytewax process failed; its output is above")
        committed = [tuple(entry) for answer in answers for entry in json.loads(answer.splitlines()[-1])]
        stored = read_counts(server.url, KEY)
    return summarized(assignment, committed, stored)


def summarized(assignment: Assignment, committed: list[tuple[int, float]], stored: dict[str, int]) -> Measurement:
    """Returns the rate in the span that is measured, over all processes."""
    size = assignment.cell.tuples
    text = Lines.of(load_corpus(assignment.corpus))
    span = MeasuredSpan(assignment.warm_up_s, assignment.seconds)
    times = sorted(now_s for _, now_s in committed)
    for count, now_s in enumerate(times, start=1):
        span.note(now_s, count, count * size)
    expected: Counter[str] = Counter()
    for number, _ in committed:
        for line in text.batch(number, size):
            expected.update(line.split())
    return span.measurement(is_exact=stored == expected)


if __name__ == "__main__":
    if sys.argv[1] == WORKER:
        print(json.dumps(work(Assignment.from_json(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))
    else:
        print(measure(Assignment.from_json(sys.argv[1])).to_json())
