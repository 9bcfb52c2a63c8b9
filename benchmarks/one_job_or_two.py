"""What is the gain from running write-only committers in the job that processes their wave?

Run it::

    python -m benchmarks.one_job_or_two
    python -m benchmarks.one_job_or_two --lines 1000 --window 128 --rounds 20 --seconds 10

All runs share one warm Spark context and one server. In a round each mode runs once, for a few seconds, and the order
alternates from round to round; each ratio compares two consecutive runs, so that other work on the machine affects
both. README.md in this folder says what each figure means.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from benchmarks.corpus import count_first_lines_of_passes
from benchmarks.harness import (
    MeasurementError,
    command_line,
    corpus_of,
    describe,
    in_rounds,
    median,
    percentile,
    table,
    write_json,
)
from benchmarks.process_tree import processor_seconds
from benchmarks.stopwatch import Stopwatch
from benchmarks.txbatch_side import WarmRuns, read_counts, warm_runs
from coordinator.transactional.options import RunOptions
from state.redis_server.embedded import EmbeddedServer


@dataclass(frozen=True, slots=True)
class Shape:
    """What runs in one mode.

    Attributes:
        lines: lines per transaction.
        window: most transactions in flight.
        group: most transactions per commit.
        early_commit: whether one job does it all.
    """

    lines: int
    window: int
    group: int
    early_commit: bool


@dataclass(frozen=True, slots=True)
class OneRun:
    """The figures of one run.

    Attributes:
        transactions_per_s: from the first issue to the last commit.
        processor_ms: processor time per transaction, of driver, Java, workers and server together.
        latency_p50_ms, latency_p99_ms: from issue to durable commit.
        waves: Spark jobs of the processing phase.
    """

    transactions_per_s: float
    processor_ms: float
    latency_p50_ms: float
    latency_p99_ms: float
    waves: int


def measure(runs: WarmRuns, url: str, shape: Shape) -> OneRun:
    """Runs the word count for a while.

    Raises:
        MeasurementError: the result is wrong.
    """
    stopwatch = Stopwatch()
    options = RunOptions(max_spout_pending=shape.window, commit_group_max=shape.group, early_commit=shape.early_commit)
    with stopwatch.installed():
        began = processor_seconds(os.getpid())
        key, statistics = runs.run(shape.lines, url, options)
        used_s = processor_seconds(os.getpid()) - began
    if read_counts(url, key) != count_first_lines_of_passes(runs.corpus, statistics.tuples):
        raise MeasurementError(f"{shape}: stored counts differ from the independent count")
    return OneRun(
        transactions_per_s=statistics.committed / statistics.seconds,
        processor_ms=1000 * used_s / statistics.committed,
        latency_p50_ms=1000 * percentile(stopwatch.latencies, 50),
        latency_p99_ms=1000 * percentile(stopwatch.latencies, 99),
        waves=statistics.waves,
    )


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("one_job_or_two", __doc__, rounds=6, option="--rounds", megabytes=50.0)
    add = parser.add_argument
    add("--lines", type=int, nargs="+", default=[1000, 243, 20], help="lines per transaction (default 1000 243 20)")
    add("--window", type=int, nargs="+", default=[1, 8, 64, 128], help="transactions in flight (default 1 8 64 128)")
    add("--group", type=int, nargs="+", default=[64], help="most transactions per commit (default 64)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="length of a run (default %(default)s)")
    return parser.parse_args(arguments)


def report(measured: Sequence[tuple[Shape, Sequence[OneRun]]]) -> str:
    """Returns one row per shape: medians, and the median and spread of the rounds' ratios."""
    headings = (
        *("lines", "window", "group", "two jobs, tx/s", "one job, tx/s", "one / two", "spread"),
        *("processor ms", "ratio", "p50 ms", "p99 ms"),
    )
    rows = []
    for (shape, two_jobs), (_, one_job) in zip(measured[::2], measured[1::2], strict=True):
        pairs = list(zip(two_jobs, one_job, strict=True))
        rates = [one.transactions_per_s / two.transactions_per_s for two, one in pairs]

        def both(figure: Callable[[OneRun], float], form: str, sides: tuple[Sequence[OneRun], ...]) -> list[str]:
            return [format(median([figure(run) for run in side]), form) for side in sides]

        sides = (two_jobs, one_job)
        rows.append(
            [
                f"{shape.lines:,}",
                str(shape.window),
                str(shape.group),
                *both(lambda run: run.transactions_per_s, ".1f", sides),
                f"{median(rates):.2f}",
                f"{min(rates):.2f}-{max(rates):.2f}",
                " / ".join(both(lambda run: run.processor_ms, ".1f", sides)),
                f"{median([one.processor_ms / two.processor_ms for two, one in pairs]):.2f}",
                " / ".join(both(lambda run: run.latency_p50_ms, ",.0f", sides)),
                " / ".join(both(lambda run: run.latency_p99_ms, ",.0f", sides)),
            ]
        )
    return table(headings, rows)


def main() -> int:
    """Measures and prints; returns 0, or 1 if a result was not exact."""
    options = parse_arguments()
    corpus = corpus_of(options)
    shapes = [Shape(*each) for each in product(options.lines, options.window, options.group, (False, True))]
    try:
        with (
            warm_runs("one_job_or_two", corpus, options) as runs,
            tempfile.TemporaryDirectory(prefix="one-job-", dir=options.work_dir) as folder,
            EmbeddedServer(folder) as server,
        ):
            measured = in_rounds(
                shapes,
                lambda shape: measure(runs, server.url, shape),
                options.rounds,
                shown=lambda shape, run: (
                    f"{shape}: {run.transactions_per_s:.1f} tx/s, processor {run.processor_ms:.1f} ms"
                ),
                warms_up=True,
            )
    except MeasurementError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{report(measured)}\n\n{options.rounds} rounds")
    write_json(options.json, describe(corpus), measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
