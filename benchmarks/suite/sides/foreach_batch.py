"""Measures foreachBatch once, in a process of its own: ``python -m benchmarks.suite.sides.foreach_batch ASSIGNMENT``.

Rates are those of `benchmarks.control_side`: files that are all there, one micro-batch after the other. For latency, a
thread moves each file into the input folder when its transaction arrives.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.control_settings import TUNINGS
from benchmarks.control_side import BatchHandler, cut_batches, session, work_folders
from benchmarks.control_side import measure as measure_rate
from benchmarks.corpus import load_corpus
from benchmarks.guarded_sink import COUNTS_KEY, GuardedSink
from benchmarks.measurement import ControlCase
from benchmarks.suite.cells import Assignment, Cell, Kind, Measurement
from benchmarks.suite.text_input import repeated_corpus
from benchmarks.suite.timing import ArrivalSchedule, arrival_count
from benchmarks.txbatch_side import read_counts
from state.redis_server.embedded import EmbeddedServer

LARGE_BATCH_LINES = 10_000
"""From this size on, a micro-batch is spread over one file per task."""
BATCHES_PER_S = 18
LINES_PER_S = 80_000
"""About what to expect: a micro-batch takes as long as the larger share says. Both only set how many there are."""
FEWEST_WARM_UPS = 6
"""Each of three ways of counting is tried twice."""
FEWEST_BATCHES = 3
POLL_S = 0.01


def batch_count(lines: int, seconds: float) -> int:
    """Returns how many micro-batches probably take so long."""
    return round(seconds * min(BATCHES_PER_S, LINES_PER_S / lines))


def tuning(cell: Cell) -> str:
    """Returns the name of the side's settings."""
    return cell.side.removeprefix("foreach_batch_")


def control_case(assignment: Assignment) -> ControlCase:
    """Returns the same assignment for `benchmarks.control_side`, with a corpus that has enough lines."""
    cell = assignment.cell
    work_dir = Path(assignment.work_dir)
    name = f"{Path(assignment.corpus).name}-{cell.tuples}"
    corpus = repeated_corpus(load_corpus(assignment.corpus), work_dir / name, cell.tuples)
    return ControlCase(
        corpus=corpus.folder,
        work_dir=assignment.work_dir,
        lines=cell.tuples,
        files=cell.tasks if cell.tuples >= LARGE_BATCH_LINES else 1,
        warm_up=max(FEWEST_WARM_UPS, batch_count(cell.tuples, assignment.warm_up_s)),
        batches=max(FEWEST_BATCHES, batch_count(cell.tuples, assignment.seconds)),
        tuning=tuning(cell),
        master=f"local[{cell.tasks}]",
    )


def rate(assignment: Assignment) -> Measurement:
    """Runs micro-batches one after the other."""
    result = measure_rate(control_case(assignment))
    return Measurement(
        transactions=result.transactions,
        tuples=result.tuples,
        seconds=result.seconds,
        is_exact=result.is_exact,
        details=result.details,
    )


def latency(assignment: Assignment) -> Measurement:
    """Lets files arrive by a schedule, once the warm-up's are done."""
    case = control_case(assignment)
    count = arrival_count(assignment.arrivals_per_s, assignment.seconds)
    with work_folders("foreach-", case.work_dir) as (folder, in_memory):
        expected, _ = cut_batches(
            load_corpus(case.corpus), in_memory / "cut", lines=case.lines, files=1, batch_counts=(case.warm_up, count)
        )
        with EmbeddedServer(folder / "data") as server:
            sink = GuardedSink(server.url)
            handler = BatchHandler(sink, case.warm_up)
            schedule = _stream(case, in_memory, handler, assignment.arrivals_per_s, count)
            sink.close()
            is_exact = read_counts(server.url, COUNTS_KEY) == expected
    committed = handler.ends[case.warm_up :]
    return schedule.measurement(
        committed, case.lines, is_exact=is_exact, details={"counting": handler.chosen().__name__}
    )


def _stream(case: ControlCase, folder: Path, handler: BatchHandler, per_s: float, count: int) -> ArrivalSchedule:
    """Streams the warm-up's files, then those that arrive; returns the arrivals."""
    spark = session(case.master, TUNINGS[case.tuning])
    files = sorted((folder / "cut").iterdir())
    (folder / "input").mkdir()
    _move(files[: case.warm_up], folder / "input")
    try:
        query = (
            spark.readStream.format("text")
            .option("lineSep", "\n")
            .option("maxFilesPerTrigger", 1)
            .load(str(folder / "input"))
            .writeStream.foreachBatch(handler)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime="0 seconds")
            .start()
        )
        _wait(query, handler, case.warm_up)
        schedule = ArrivalSchedule(time.perf_counter() + POLL_S, per_s, count)
        feeder = threading.Thread(target=_feed, args=(schedule, files[case.warm_up :], folder / "input"), daemon=True)
        feeder.start()
        _wait(query, handler, case.warm_up + count)
        feeder.join()
        query.stop()
    finally:
        spark.stop()
    return schedule


def _wait(query: StreamingQuery, handler: BatchHandler, batches: int) -> None:
    """Waits until this number of micro-batches are committed; raises what ended the query instead."""
    while len(handler.ends) < batches:
        if query.awaitTermination(timeout=1):
            raise RuntimeError(f"the query ended after {len(handler.ends)} of {batches} micro-batches")


def _feed(schedule: ArrivalSchedule, files: list[Path], folder: Path) -> None:
    for number, path in enumerate(files):
        time.sleep(max(0.0, schedule.arrival_s(number) - time.perf_counter()))
        _move([path], folder)


def _move(paths: list[Path], folder: Path) -> None:
    for path in paths:
        os.rename(path, folder / path.name)  # noqa: PTH104 - keeps the file's time, which orders the micro-batches


def measure(assignment: Assignment) -> Measurement:
    """Makes the measurement."""
    return rate(assignment) if assignment.cell.kind == Kind.RATE.value else latency(assignment)


if __name__ == "__main__":
    print(measure(Assignment.from_json(sys.argv[1])).to_json())
