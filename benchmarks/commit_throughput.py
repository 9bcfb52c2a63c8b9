"""Transactions and tuples per second and commit latency, compared with the control on the same text.

Run it::

    python -m benchmarks.commit_throughput
    python -m benchmarks.commit_throughput --lines 100 1000 10000 --window 16 128 --group 1 64 --repeat 5

Each measurement runs in a fresh process. The sides alternate, round after round, so that a machine that
slows down slows both; ratios are ratios of medians. README.md in this folder says what each figure means.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks.control_settings import TUNINGS
from benchmarks.corpus import Corpus, build_corpus
from benchmarks.fresh_process import MeasurementError, measure_in_fresh_process
from benchmarks.measurement import Case, ControlCase, Result, TxbatchCase
from benchmarks.report import Measured, equal_rows_section, same_rows_section
from state.printable import counted

LARGE_BATCH_LINES = 10_000
"""From this size on, a micro-batch of the control is spread over one file per core."""
CONTROL_LINES = 2_000_000
"""A measurement of the control reads at most about this many lines."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.commit_throughput", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--megabytes", type=float, default=50.0, help="size of the corpus (default %(default)s)")
    add("--lines", type=int, nargs="*", default=[1000], help="lines per transaction (default 1000)")
    add(
        "--words-per-transaction",
        type=int,
        nargs="*",
        default=[1000],
        metavar="WORDS",
        help="in addition, as many lines as hold about this many words (default 1000)",
    )
    add("--window", type=int, nargs="+", default=[128], help="transactions in flight, 0: by time (default 128)")
    add("--group", type=int, nargs="+", default=[64], help="most transactions per commit (default 64)")
    add(
        "--control",
        nargs="+",
        choices=sorted(TUNINGS),
        default=["best", "plain"],
        help="settings of the control (default both)",
    )
    add("--tasks", type=int, default=2, metavar="N", help="of every component of txbatch (default %(default)s)")
    add("--master", default="local[2]", help="Spark master for both sides (default %(default)s)")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting for txbatch only")
    add("--seconds", type=float, default=20.0, help="length of a txbatch measurement (default %(default)s)")
    add("--batches", type=int, default=100, help="micro-batches per control measurement (default 100)")
    add("--warm-up", type=int, default=100, help="micro-batches before those (default %(default)s)")
    add("--repeat", type=int, default=3, help="rounds (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"), help="corpus and data (default %(default)s)")
    add("--json", type=Path, metavar="FILE", help="write every single result to FILE")
    add("--quick", action="store_true", help="one short round: shows that it works, not how fast it is")
    options = parser.parse_args(arguments)
    if options.quick:
        options.megabytes, options.seconds, options.repeat = 5.0, 5.0, 1
        options.batches, options.warm_up = 20, 30
    for entry in options.conf:
        if "=" not in entry:
            parser.error(f"--conf {entry!r} is not KEY=VALUE")
    return options


def make_cases(options: argparse.Namespace, corpus: Corpus) -> list[Case]:
    """Returns the measurements of a round, in order: for each transaction size the control, then txbatch."""
    where = {"corpus": corpus.folder, "work_dir": str(options.work_dir.resolve()), "master": options.master}
    conf = dict(entry.split("=", 1) for entry in options.conf)
    sizes = [*options.lines, *(corpus.lines_for_words(words) for words in options.words_per_transaction)]
    pairs = [(window, group) for window in options.window for group in options.group if group <= (window or group)]
    largest = max(options.window)
    pairs += [(largest, 1), (1, 1)]  # show the gain from grouping, and from keeping many in flight
    cases: list[Case] = []
    for lines in dict.fromkeys(sizes):
        cases += [control_case(options, lines, tuning, where) for tuning in options.control]
        cases += [
            TxbatchCase(
                lines=lines,
                window=window,
                group=group,
                seconds=options.seconds,
                conf=conf,
                tasks=options.tasks,
                **where,
            )
            for window, group in dict.fromkeys(pairs)
        ]
        in_flight = lines * largest
        if in_flight * 3 <= corpus.line_count and in_flight not in sizes:
            cases.append(control_case(options, in_flight, options.control[0], where))
    return cases


def control_case(options: argparse.Namespace, lines: int, tuning: str, where: dict[str, str]) -> ControlCase:
    """Returns the control at one batch size; the larger the batches, the fewer."""
    fewer = max(12, CONTROL_LINES // lines)
    files = (os.cpu_count() or 1) if lines >= LARGE_BATCH_LINES else 1
    return ControlCase(
        lines=lines,
        files=files,
        warm_up=min(options.warm_up, fewer),
        batches=min(options.batches, fewer),
        tuning=tuning,
        **where,
    )


def run_rounds(cases: Sequence[Case], repeat: int) -> list[Measured]:
    """Measures every case once per round."""
    results: list[list[Result]] = [[] for _ in cases]
    for number in range(repeat):
        for case, found in zip(cases, results, strict=True):
            result = measure_in_fresh_process(case)
            found.append(result)
            load = os.getloadavg()[0]
            print(
                f"round {number + 1}/{repeat}: {case.lines:,} lines, {case.name}: "
                f"{result.transactions_per_s:.1f} tx/s (load {load:.1f}) {result.details}",
                file=sys.stderr,
                flush=True,
            )
    return list(zip(cases, results, strict=True))


def describe(corpus: Corpus) -> str:
    """Describes machine, versions and text, for later readers of the figures."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "redis", "hiredis", "msgpack"))
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"{now}; {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}\n"
        f"corpus: {corpus.byte_count / 1e6:.0f} MB, {corpus.line_count:,} lines, {corpus.word_count:,} words, "
        f"{corpus.vocabulary:,} different; repeated {counted(corpus.repeated, 'time')}"
    )


def main() -> int:
    """Measures and prints; returns 0, or 1 if a side failed or was not exact."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    print(describe(corpus), flush=True)
    try:
        measured = run_rounds(make_cases(options, corpus), options.repeat)
    except MeasurementError as error:
        print(error, file=sys.stderr)
        return 1
    sizes = dict.fromkeys(case.lines for case, _ in measured if isinstance(case, TxbatchCase))
    for lines in sizes:
        print(f"\n{same_rows_section(lines, measured)}")
    print(f"\n{equal_rows_section(measured)}")
    if options.json:
        entries = [
            {"side": type(case).__name__, "case": asdict(case), "results": [asdict(r) for r in results]}
            for case, results in measured
        ]
        options.json.write_text(json.dumps({"about": describe(corpus), "cases": entries}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
