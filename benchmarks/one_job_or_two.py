"""What does it bring to run committers that only write in the job that processes their wave?

Run it::

    python -m benchmarks.one_job_or_two
    python -m benchmarks.one_job_or_two --lines 1000 --window 128 --repeat 5

Each measurement runs in a fresh process, and the two modes take turns, round after round, the first one
changing; the ratio of a round compares neighbours in time. README.md in this folder says what each figure means.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.commit_throughput import describe
from benchmarks.corpus import Corpus, build_corpus
from benchmarks.fresh_process import MeasurementError, measure_in_fresh_process
from benchmarks.measurement import Result, TxbatchCase, median
from benchmarks.report import table

Pair = tuple[Result, Result]
"""What one round measured: two jobs, one job."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.one_job_or_two", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--megabytes", type=float, default=50.0, help="size of the corpus (default %(default)s)")
    add("--lines", type=int, nargs="+", default=[1000, 243, 20], help="lines of a transaction (default 1000 243 20)")
    add("--window", type=int, nargs="+", default=[1, 8, 128], help="transactions in flight (default 1 8 128)")
    add("--group", type=int, nargs="+", default=[64], help="most transactions of a commit (default 64)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seconds", type=float, default=15.0, help="length of a measurement (default %(default)s)")
    add("--repeat", type=int, default=3, help="rounds (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"), help="corpus and data (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every single result there")
    return parser.parse_args(arguments)


def make_cases(options: argparse.Namespace, corpus: Corpus) -> list[TxbatchCase]:
    """Every case, in the general way."""
    return [
        TxbatchCase(
            corpus=corpus.folder,
            work_dir=str(options.work_dir.resolve()),
            lines=lines,
            window=window,
            group=group,
            seconds=options.seconds,
            master=options.master,
            early_commit=False,
        )
        for lines in options.lines
        for window in options.window
        for group in options.group
    ]


def measure_pair(case: TxbatchCase, *, is_one_first: bool) -> Pair:
    """Measures both modes, one right after the other."""
    found = {
        mode: measure_in_fresh_process(replace(case, early_commit=mode)) for mode in (is_one_first, not is_one_first)
    }
    return found[False], found[True]


def run_rounds(cases: Sequence[TxbatchCase], repeat: int) -> list[list[Pair]]:
    """Measures every case once a round."""
    pairs: list[list[Pair]] = [[] for _ in cases]
    for number in range(repeat):
        for case, found in zip(cases, pairs, strict=True):
            two, one = measure_pair(case, is_one_first=number % 2 == 1)
            found.append((two, one))
            print(
                f"round {number + 1}/{repeat}: {case.lines:,} lines, window {case.window}, group {case.group}: "
                f"two jobs {steady(two):.1f}, one {steady(one):.1f} tx/s, x{steady(one) / steady(two):.2f} "
                f"(load {os.getloadavg()[0]:.1f}) {two.details} {one.details}",
                file=sys.stderr,
                flush=True,
            )
    return pairs


def steady(result: Result) -> float:
    """The rate without the first seconds, of the whole run if it was too short for that."""
    return result.details["steady_per_s"] or result.transactions_per_s


def report(cases: Sequence[TxbatchCase], measured: Sequence[Sequence[Pair]]) -> str:
    """One row a case: medians, and the median and spread of the rounds' ratios."""
    headings = (
        "lines",
        "window",
        "group",
        "two jobs, tx/s",
        "one job, tx/s",
        "one / two",
        "spread",
        "p50 ms",
        "p99 ms",
    )
    rows = []
    for case, pairs in zip(cases, measured, strict=True):
        ratios = [steady(one) / steady(two) for two, one in pairs]
        rows.append(
            [
                f"{case.lines:,}",
                str(case.window),
                str(case.group),
                f"{median([steady(two) for two, _ in pairs]):.1f}",
                f"{median([steady(one) for _, one in pairs]):.1f}",
                f"{median(ratios):.2f}",
                f"{min(ratios):.2f}-{max(ratios):.2f}",
                _both(pairs, "latency_p50_ms"),
                _both(pairs, "latency_p99_ms"),
            ]
        )
    return table(headings, rows)


def _both(pairs: Sequence[Pair], name: str) -> str:
    """A latency of two jobs, and of one."""
    two, one = (median([getattr(pair[mode], name) for pair in pairs]) for mode in (0, 1))
    return f"{two:,.0f} / {one:,.0f}"


def main() -> int:
    """Measures, prints and returns 0; 1 if a run failed or was not exact."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    print(describe(corpus), flush=True)
    cases = make_cases(options, corpus)
    try:
        measured = run_rounds(cases, options.repeat)
    except MeasurementError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"\n{report(cases, measured)}")
    if options.json:
        entries = [
            {
                "case": asdict(case),
                "two_jobs": [asdict(two) for two, _ in pairs],
                "one_job": [asdict(one) for _, one in pairs],
            }
            for case, pairs in zip(cases, measured, strict=True)
        ]
        options.json.write_text(json.dumps({"about": describe(corpus), "cases": entries}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
