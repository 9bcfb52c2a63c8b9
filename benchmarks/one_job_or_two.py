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
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.commit_throughput import describe
from benchmarks.corpus import Corpus, build_corpus
from benchmarks.input_passes import count_first_lines_of_passes, link_passes
from benchmarks.measurement import median, percentile
from benchmarks.process_tree import processor_seconds
from benchmarks.report import table
from benchmarks.stopwatch import Stopwatch
from benchmarks.txbatch_side import PASS_COUNT, Deadline, read_counts
from coordinator.engines.spark.session import close_context, open_context
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples.word_count import topology
from state.redis_server.embedded import EmbeddedServer


@dataclass(frozen=True, slots=True)
class Shape:
    """What runs in both modes.

    Attributes:
        lines: lines per transaction.
        window: most transactions in flight.
        group: most transactions per commit.
    """

    lines: int
    window: int
    group: int


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


Pair = tuple[OneRun, OneRun]
"""Two jobs, one job."""


class InexactError(Exception):
    """The server's counts differ from an independent count."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs share.

    Attributes:
        corpus: the text.
        pattern: glob of the repeated text.
        context: the Spark context.
        redis_url: address of the server.
        seconds: how long a run takes new transactions.
        numbers: numbers the topologies.
    """

    corpus: Corpus
    pattern: str
    context: Any
    redis_url: str
    seconds: float
    numbers: count[int]

    def measure(self, shape: Shape, *, early_commit: bool) -> OneRun:
        """Runs the word count for a while, on empty state.

        Raises:
            InexactError: the result is wrong.
        """
        topology_id = f"word_count_{next(self.numbers)}"
        deadline, stopwatch = Deadline(self.seconds), Stopwatch()
        options = RunOptions(max_spout_pending=shape.window, commit_group_max=shape.group, early_commit=early_commit)
        with stopwatch.installed():
            began = processor_seconds(os.getpid())
            statistics = run(
                topology(self.pattern, shape.lines, topology_id),
                redis_url=self.redis_url,
                spark=self.context,
                options=options,
                on_start=deadline.start,
                on_progress=deadline.check,
            )
            used_s = processor_seconds(os.getpid()) - began
        stored = read_counts(self.redis_url, f"{{{topology_id}}}:counts")
        if stored != count_first_lines_of_passes(self.corpus, statistics.tuples):
            raise InexactError(f"{shape}, early_commit={early_commit}: stored counts differ from the independent count")
        return OneRun(
            transactions_per_s=statistics.committed / statistics.seconds,
            processor_ms=1000 * used_s / statistics.committed,
            latency_p50_ms=1000 * percentile(stopwatch.latencies, 50),
            latency_p99_ms=1000 * percentile(stopwatch.latencies, 99),
            waves=statistics.waves,
        )

    def pair(self, shape: Shape, *, is_one_first: bool) -> Pair:
        """Measures both modes, one right after the other."""
        order = (is_one_first, not is_one_first)
        found = {early_commit: self.measure(shape, early_commit=early_commit) for early_commit in order}
        return found[False], found[True]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.one_job_or_two", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--megabytes", type=float, default=50.0, help="size of the corpus (default %(default)s)")
    add("--lines", type=int, nargs="+", default=[1000, 243, 20], help="lines per transaction (default 1000 243 20)")
    add("--window", type=int, nargs="+", default=[1, 8, 64, 128], help="transactions in flight (default 1 8 64 128)")
    add("--group", type=int, nargs="+", default=[64], help="most transactions per commit (default 64)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="length of a run (default %(default)s)")
    add("--rounds", type=int, default=6, help="runs of each mode (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"), help="corpus and data (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every single result to FILE")
    return parser.parse_args(arguments)


def run_rounds(bench: Bench, shapes: Sequence[Shape], rounds: int) -> list[list[Pair]]:
    """Runs every shape in both modes once per round; an extra round before the first warms up and is discarded."""
    pairs: list[list[Pair]] = [[] for _ in shapes]
    for number in range(rounds + 1):
        for shape, found in zip(shapes, pairs, strict=True):
            two, one = bench.pair(shape, is_one_first=number % 2 == 1)
            if number:
                found.append((two, one))
            print(
                f"round {number}/{rounds}: {shape.lines:,} lines, window {shape.window}, group {shape.group}: "
                f"two jobs {two.transactions_per_s:.1f}, one {one.transactions_per_s:.1f} tx/s, "
                f"processor {two.processor_ms:.1f}, {one.processor_ms:.1f} ms (load {os.getloadavg()[0]:.1f})",
                file=sys.stderr,
                flush=True,
            )
    return pairs


def report(shapes: Sequence[Shape], measured: Sequence[Sequence[Pair]]) -> str:
    """Returns one row per shape: medians, and the median and spread of the rounds' ratios."""
    headings = (
        *("lines", "window", "group", "two jobs, tx/s", "one job, tx/s", "one / two", "spread"),
        *("processor ms", "ratio", "p50 ms", "p99 ms"),
    )
    rows = []
    for shape, pairs in zip(shapes, measured, strict=True):
        rates = [one.transactions_per_s / two.transactions_per_s for two, one in pairs]
        rows.append(
            [
                f"{shape.lines:,}",
                str(shape.window),
                str(shape.group),
                f"{median([two.transactions_per_s for two, _ in pairs]):.1f}",
                f"{median([one.transactions_per_s for _, one in pairs]):.1f}",
                f"{median(rates):.2f}",
                f"{min(rates):.2f}-{max(rates):.2f}",
                _both(pairs, lambda run: run.processor_ms, ".1f"),
                f"{median([one.processor_ms / two.processor_ms for two, one in pairs]):.2f}",
                _both(pairs, lambda run: run.latency_p50_ms, ",.0f"),
                _both(pairs, lambda run: run.latency_p99_ms, ",.0f"),
            ]
        )
    return table(headings, rows)


def _both(pairs: Sequence[Pair], figure: Callable[[OneRun], float], form: str) -> str:
    """Returns the medians for two jobs and for one."""
    return " / ".join(format(median([figure(pair[mode]) for pair in pairs]), form) for mode in (0, 1))


def main() -> int:
    """Measures and prints; returns 0, or 1 if a result was not exact."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    print(describe(corpus), flush=True)
    shapes = [
        Shape(lines, window, group) for lines in options.lines for window in options.window for group in options.group
    ]
    folder = Path(tempfile.mkdtemp(prefix="one-job-", dir=options.work_dir))
    context = open_context("one_job_or_two", options.master, {})
    began = time.monotonic()
    try:
        pattern = link_passes(corpus, folder / "input", PASS_COUNT)
        with EmbeddedServer(folder / "data") as server:
            bench = Bench(corpus, pattern, context, server.url, options.seconds, count(1))
            measured = run_rounds(bench, shapes, options.rounds)
    except InexactError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        close_context(context)
        shutil.rmtree(folder)
    print(f"\n{report(shapes, measured)}\n\n{options.rounds} rounds, {time.monotonic() - began:.0f} s")
    if options.json:
        entries = [
            {
                "shape": asdict(shape),
                "two_jobs": [asdict(two) for two, _ in pairs],
                "one_job": [asdict(one) for _, one in pairs],
            }
            for shape, pairs in zip(shapes, measured, strict=True)
        ]
        options.json.write_text(json.dumps({"about": describe(corpus), "shapes": entries}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
