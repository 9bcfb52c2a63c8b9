"""Measures txbatch once, in a process of its own: ``python -m benchmarks.suite.sides.txbatch ASSIGNMENT``."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import redis

from benchmarks.corpus import copy_enough, load_corpus
from benchmarks.stopwatch import Stopwatch
from benchmarks.suite.cells import Assignment, Cell, Kind, Measurement
from benchmarks.suite.timing import ArrivalSchedule, MeasuredSpan, arrival_count, processor_now
from benchmarks.suite.workloads import word_count
from benchmarks.suite.workloads.table import Workload, input_of, workload
from benchmarks.task_counts import with_tasks
from coordinator.run import run
from coordinator.sources.files import file_spout
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.redis_server.embedded import EmbeddedServer

if TYPE_CHECKING:
    from coordinator.transactional.coordinator import Coordinator
    from coordinator.watching.statistics.run_statistics import RunStatistics

DEALT_TUPLES_MAX = 1_000
"""Transactions of more are spread over tasks."""
READERS = ("dedup",)
"""Workloads with committers that read in several tasks."""


class SpanWatch:
    """Drains a run once its measured span has ended, and notes the waves at both ends.

    Args:
        span: decides where the measured span begins and ends.
    """

    def __init__(self, span: MeasuredSpan) -> None:
        self._span = span
        self._coordinator: Coordinator | None = None
        self.waves: list[int] = []

    def start(self, coordinator: Coordinator) -> None:
        """Keeps the coordinator, when the run begins."""
        self._coordinator = coordinator

    def progress(self, statistics: RunStatistics) -> None:
        """Looks at the run after every event."""
        if self._span.note(time.monotonic(), statistics.committed, statistics.tuples):
            self.waves.append(statistics.waves)
        if self._span.end is not None and self._coordinator is not None:
            self._coordinator.drain()


class Arrivals:
    """Lets transactions arrive: freely during the warm-up; then, once all of those are committed, by a schedule.

    Args:
        assignment: says how many, and for how long.
        committed: returns how many transactions are committed.
        clock: seconds, as of the stopwatch that notes commits.
    """

    def __init__(
        self, assignment: Assignment, committed: Callable[[], int], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._assignment, self._committed, self._clock = assignment, committed, clock
        self._warm_until_s: float | None = None
        self._cut = 0
        self.warm_ups = 0
        self.schedule: ArrivalSchedule | None = None

    def has_next(self) -> bool:
        """Returns whether a transaction waits to be cut; the schedule begins in the call that finds nothing to do."""
        now_s = self._clock()
        if self._warm_until_s is None:
            self._warm_until_s = now_s + self._assignment.warm_up_s
        if now_s < self._warm_until_s:
            return True
        if self.schedule is None:
            self.warm_ups = self._cut
            if self._committed() < self.warm_ups:
                return False
            per_s = self._assignment.arrivals_per_s
            self.schedule = ArrivalSchedule(now_s, per_s, arrival_count(per_s, self._assignment.seconds))
        return self._cut - self.warm_ups < self.schedule.arrived(now_s)

    def have_ended(self) -> bool:
        """Returns whether all have arrived and been cut."""
        return self.schedule is not None and self._cut - self.warm_ups >= self.schedule.count

    def took_one(self) -> None:
        """Notes that a transaction was cut."""
        self._cut += 1

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Makes spouts over files offer a transaction only once it has arrived."""
        arrivals = self

        class ArrivingFiles(FileCoordinator):
            def is_ready(self) -> bool:
                return arrivals.has_next() and super().is_ready()

            def initialize_transaction(self, txid: int, previous: Any) -> Any:
                metadata = super().initialize_transaction(txid, previous)
                arrivals.took_one()
                return metadata

            def is_exhausted(self) -> bool:
                return arrivals.have_ended()

        with patch.object(file_spout, "FileCoordinator", ArrivingFiles):
            yield


def measure(assignment: Assignment) -> Measurement:
    """Runs the topology for a while and compares what the server holds with an independent count."""
    cell = assignment.cell
    chosen = workload(cell.workload)
    topology = columns if cell.side == "txbatch_columns" else chosen.topology
    corpus = load_corpus(assignment.corpus)
    folder = Path(tempfile.mkdtemp(prefix="txbatch-", dir=assignment.work_dir))
    is_rate = cell.kind == Kind.RATE.value
    span, stopwatch = MeasuredSpan(assignment.warm_up_s, assignment.seconds, processor_now), Stopwatch()
    watch = SpanWatch(span)
    arrivals = Arrivals(assignment, lambda: sum(count for _, count in stopwatch.commit_times))
    try:
        pattern = copy_enough(corpus, folder / "input", assignment.warm_up_s + assignment.seconds)
        with (
            EmbeddedServer(folder / "data") as server,
            nullcontext() if is_rate else stopwatch.installed(),
            nullcontext() if is_rate else arrivals.installed(),
        ):
            statistics = run(
                topology(pattern, cell.tuples, tasks_of(cell)),
                redis_url=server.url,
                master=f"local[{cell.tasks}]",
                options=RunOptions(max_spout_pending=cell.window or None),
                on_start=watch.start if is_rate else None,
                on_progress=watch.progress if is_rate else None,
            )
            expected = chosen.expected(input_of(cell.workload, corpus).first(statistics.tuples))
            is_exact = holds(server.url, chosen, expected)
    finally:
        shutil.rmtree(folder)
    if is_rate:
        first, last = watch.waves
        return span.measurement(is_exact=is_exact, details={"waves": last - first})
    committed = [now_s for now_s, count in stopwatch.commit_times for _ in range(count)][arrivals.warm_ups :]
    assert arrivals.schedule is not None  # the run has ended, and so have the arrivals
    return arrivals.schedule.measurement(committed, cell.tuples, is_exact=is_exact)


def tasks_of(cell: Cell) -> int:
    """Returns how many tasks each component has: one where waves are dealt by batch, which is what we recommend."""
    return 1 if cell.tuples <= DEALT_TUPLES_MAX and cell.workload not in READERS else cell.tasks


def holds(url: str, chosen: Workload, expected: object) -> bool:
    """Returns whether a server holds exactly that."""
    with redis.Redis.from_url(url, decode_responses=True, protocol=2) as client:
        return chosen.stored(client) == expected


def columns(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the shipped example with column batches; found by name, since an older checkout has none."""
    made = import_module("examples.word_count_batches").topology(pattern, tuples, word_count.TOPOLOGY_ID)
    assert isinstance(made, Topology)
    return with_tasks(made, tasks)


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
