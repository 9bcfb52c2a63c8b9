"""Measures plain redis-py, one process: ``python -m benchmarks.suite.sides.redis_pipeline ASSIGNMENT``.

Each transaction is worked out in Python and written with one pipeline. There is no engine, no order to keep, no fence,
no position: it is what can be had if nothing ever fails.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import redis

from benchmarks.corpus import load_corpus
from benchmarks.suite.cells import Assignment, Kind, Measurement
from benchmarks.suite.timing import ArrivalSchedule, MeasuredSpan, arrival_count, processor_now
from benchmarks.suite.workloads.table import input_of, workload
from state.redis_server.embedded import EmbeddedServer


class Writer:
    """Works out transactions one after the other.

    Args:
        assignment: what to measure.
        client: of the server.
    """

    def __init__(self, assignment: Assignment, client: redis.Redis) -> None:
        self._cell, self._client = assignment.cell, client
        self._workload = workload(self._cell.workload)
        self._input = input_of(self._cell.workload, load_corpus(assignment.corpus))
        self._pipeline = client.pipeline(transaction=False)
        self.written = 0

    def write_next(self) -> None:
        """Writes the next transaction."""
        self._workload.write(self._client, self._pipeline, self._input.batch(self.written, self._cell.tuples))
        self.written += 1

    def is_exact(self) -> bool:
        """Returns whether the server holds what it should."""
        expected = self._workload.expected(self._input.first(self.written * self._cell.tuples))
        return self._workload.stored(self._client) == expected


def measure(assignment: Assignment) -> Measurement:
    """Writes for a while and compares what the server holds with an independent count."""
    with (
        tempfile.TemporaryDirectory(prefix="pipeline-", dir=assignment.work_dir) as folder,
        EmbeddedServer(Path(folder) / "data") as server,
        redis.Redis.from_url(server.url, decode_responses=True, protocol=2) as client,
    ):
        writer = Writer(assignment, client)
        if assignment.cell.kind == Kind.RATE.value:
            return _rate(assignment, writer)
        return _latency(assignment, writer)


def _rate(assignment: Assignment, writer: Writer) -> Measurement:
    span = MeasuredSpan(assignment.warm_up_s, assignment.seconds, processor_now)
    while span.end is None:
        span.note(time.monotonic(), writer.written, writer.written * assignment.cell.tuples)
        if span.end is None:
            writer.write_next()
    return span.measurement(is_exact=writer.is_exact())


def _latency(assignment: Assignment, writer: Writer) -> Measurement:
    warm_until_s = time.monotonic() + assignment.warm_up_s
    while time.monotonic() < warm_until_s:
        writer.write_next()
    count = arrival_count(assignment.arrivals_per_s, assignment.seconds)
    schedule = ArrivalSchedule(time.monotonic(), assignment.arrivals_per_s, count)
    committed = []
    for number in range(count):
        time.sleep(max(0.0, schedule.arrival_s(number) - time.monotonic()))
        writer.write_next()
        committed.append(time.monotonic())
    return schedule.measurement(committed, assignment.cell.tuples, is_exact=writer.is_exact())


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
