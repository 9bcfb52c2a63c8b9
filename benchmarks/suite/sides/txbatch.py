"""Measures txbatch once, in a process of its own: ``python -m benchmarks.suite.sides.txbatch ASSIGNMENT``."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import redis

from benchmarks.corpus import link_passes
from benchmarks.stopwatch import Stopwatch
from benchmarks.suite.cells import Assignment, Kind, Measurement
from benchmarks.suite.measured_span import MeasuredSpan
from benchmarks.suite.open_loop import ArrivalSchedule, arrival_count, summarized_ms
from benchmarks.suite.sides import processor_time
from benchmarks.suite.text_input import load_corpus
from benchmarks.suite.workloads.table import Workload, input_of, workload
from coordinator.run import run
from coordinator.sources.files import file_spout
from coordinator.sources.files.file_coordinator import FileCoordinator
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.redis_server.embedded import EmbeddedServer

if TYPE_CHECKING:
    from coordinator.transactional.coordinator import Coordinator
    from coordinator.watching.statistics.run_statistics import RunStatistics

PASS_COUNT = 200
"""More than any run reads; an unread file costs nothing."""

MakeTopology = Callable[[str, int, int], Topology]


class SpanWatch:
    """Drains a run once its measured span has ended, and notes what was used in it.

    Args:
        span: decides where the measured span begins and ends.
    """

    def __init__(self, span: MeasuredSpan) -> None:
        self._span = span
        self._coordinator: Coordinator | None = None
        self.processor: list[dict[str, float]] = []
        self.waves: list[int] = []

    def start(self, coordinator: Coordinator) -> None:
        """Keeps the coordinator, when the run begins."""
        self._coordinator = coordinator

    def progress(self, statistics: RunStatistics) -> None:
        """Looks at the run after every event."""
        if self._span.note(time.monotonic(), statistics.committed, statistics.tuples):
            self.processor.append(processor_time.now())
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

            def is_exhausted(self, last: Any) -> bool:
                return arrivals.have_ended()

        with patch.object(file_spout, "FileCoordinator", ArrivingFiles):
            yield


def measure(assignment: Assignment, topology: MakeTopology | None = None) -> Measurement:
    """Runs the topology for a while and compares what the server holds with an independent count.

    Args:
        assignment: what to measure.
        topology: makes the topology; None takes the workload's.
    """
    cell = assignment.cell
    chosen = workload(cell.workload)
    corpus = load_corpus(assignment.corpus)
    folder = Path(tempfile.mkdtemp(prefix="txbatch-", dir=assignment.work_dir))
    is_rate = cell.kind == Kind.RATE.value
    span, stopwatch = MeasuredSpan(assignment.warm_up_s, assignment.seconds), Stopwatch()
    watch = SpanWatch(span)
    arrivals = Arrivals(assignment, lambda: sum(count for _, count in stopwatch.commit_times))
    try:
        pattern = link_passes(corpus, folder / "input", PASS_COUNT)
        with (
            EmbeddedServer(folder / "data") as server,
            nullcontext() if is_rate else stopwatch.installed(),
            nullcontext() if is_rate else arrivals.installed(),
        ):
            statistics = run(
                (topology or chosen.topology)(pattern, cell.tuples, cell.tasks),
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
        return rate(span, watch, is_exact=is_exact)
    return latency(cell.tuples, arrivals, stopwatch.commit_times, is_exact=is_exact)


def holds(url: str, chosen: Workload, expected: object) -> bool:
    """Returns whether a server holds exactly that."""
    with redis.Redis.from_url(url, decode_responses=True, protocol=2) as client:
        return chosen.stored(client) == expected


def rate(span: MeasuredSpan, watch: SpanWatch, *, is_exact: bool) -> Measurement:
    """Returns what a closed loop has shown."""
    begin, end = span.ends()
    return Measurement(
        transactions=end.transactions - begin.transactions,
        tuples=end.tuples - begin.tuples,
        seconds=end.at_s - begin.at_s,
        is_exact=is_exact,
        processor_s=processor_time.since(*watch.processor),
        details={"waves": watch.waves[1] - watch.waves[0]},
    )


def latency(tuples: int, arrivals: Arrivals, commit_times: list[tuple[float, int]], *, is_exact: bool) -> Measurement:
    """Returns what an open loop has shown."""
    committed = [now_s for now_s, count in commit_times for _ in range(count)][arrivals.warm_ups :]
    schedule = arrivals.schedule
    assert schedule is not None  # the run has ended, and so have the arrivals
    return Measurement(
        transactions=schedule.count,
        tuples=schedule.count * tuples,
        seconds=committed[-1] - schedule.start_s,
        is_exact=is_exact,
        latencies_ms=summarized_ms(schedule.latencies_s(committed)),
    )


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
