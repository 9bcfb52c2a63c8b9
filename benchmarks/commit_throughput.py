"""Transactions and tuples per second and commit latency, compared with the control on the same text.

Run it::

    python -m benchmarks.commit_throughput
    python -m benchmarks.commit_throughput --lines 100 1000 10000 --window 16 128 --group 1 64 --repeat 5

Each measurement runs in a fresh process. The sides alternate, round after round, so that a machine that
slows down slows both; ratios are ratios of medians. README.md in this folder says what each figure means.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from benchmarks.control_settings import TUNINGS
from benchmarks.corpus import Corpus
from benchmarks.harness import (
    MeasurementError,
    Spread,
    command_line,
    corpus_of,
    describe,
    in_own_process,
    in_rounds,
    median,
    table,
    write_json,
)
from benchmarks.measurement import ControlCase, Result, ThroughputCase, TxbatchCase

Case = TxbatchCase | ControlCase
Measured = tuple[Case, list[Result]]
HEADINGS = (
    *("side", "rows in flight", "tx/s", "spread", "tuples/s", "words/s"),
    *("latency p50", "p99", "commit p50", "p99"),
)
LARGE_BATCH_LINES = 10_000
"""From this size on, a micro-batch of the control is spread over one file per core."""
CONTROL_LINES = 2_000_000
"""A measurement of the control reads at most about this many lines."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("commit_throughput", __doc__, rounds=3, megabytes=50.0, has_quick=True)
    add = parser.add_argument
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
    add("--control", nargs="+", choices=sorted(TUNINGS), default=["best", "plain"], help="settings (default both)")
    add("--tasks", type=int, default=2, metavar="N", help="of every component of txbatch (default %(default)s)")
    add("--master", default="local[2]", help="Spark master for both sides (default %(default)s)")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting for txbatch only")
    add("--seconds", type=float, default=20.0, help="length of a txbatch measurement (default %(default)s)")
    add("--batches", type=int, default=100, help="micro-batches per control measurement (default 100)")
    add("--warm-up", type=int, default=100, help="micro-batches before those (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.megabytes, options.seconds, options.rounds = 5.0, 5.0, 1
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


def measured_alone(case: ThroughputCase) -> Result:
    """Measures one case in a process of its own.

    Raises:
        MeasurementError: the process failed, or its counts are not exact.
    """
    module = "benchmarks.txbatch_side" if isinstance(case, TxbatchCase) else "benchmarks.control_side"
    result = Result(**in_own_process(module, case.to_json()))
    if not result.is_exact:
        raise MeasurementError(f"{module} stored counts that differ from the independent count; case {case}")
    return result


def rate(results: Sequence[Result]) -> float:
    """Returns the median of transactions a second."""
    return median([result.transactions_per_s for result in results])


def same_rows_section(lines: int, measured: Sequence[Measured]) -> str:
    """Returns the table for one transaction size: every txbatch case, and the control with batches of the same rows."""
    chosen = [entry for entry in measured if entry[0].lines == lines]
    controls = [(case, results) for case, results in chosen if isinstance(case, ControlCase)]
    rows = []
    for case, results in chosen:
        ratios = [f"{rate(results) / rate(base):.1f}" for _, base in controls]
        rows.append([case.name, f"{case.rows_in_flight:,}", *_figures(results), *ratios])
    words = median([result.words / result.transactions for _, results in chosen for result in results])
    title = f"Transactions of {lines:,} lines, about {words:,.0f} words"
    return f"{title}\n\n{table([*HEADINGS, *(f'x {case.tuning}' for case, _ in controls)], rows)}"


def equal_rows_section(measured: Sequence[Measured]) -> str:
    """Returns the table that compares both sides at equal rows in flight."""
    rows = []
    mine = [(case, results) for case, results in measured if isinstance(case, TxbatchCase)]
    for case, results in mine:
        for other, base in measured:
            if isinstance(other, ControlCase) and other.rows_in_flight == case.rows_in_flight:
                own, theirs = (median([result.tuples_per_s for result in side]) for side in (results, base))
                name = f"{case.lines:,} lines, window {case.window}, group {case.group}; {other.tuning} control"
                figures = [f"{own:,.0f}", f"{theirs:,.0f}", f"{own / theirs:.2f}"]
                rows.append([name, f"{case.rows_in_flight:,}", *figures])
    headings = ("txbatch; control", "rows in flight", "txbatch tuples/s", "control tuples/s", "ratio")
    return f"At equal rows in flight\n\n{table(headings, rows)}"


def _figures(results: Sequence[Result]) -> list[str]:
    def middle(figure: Callable[[Result], float], form: str = ",.0f") -> str:
        return format(median([figure(result) for result in results]), form)

    return [
        *Spread.over([result.transactions_per_s for result in results]).cells(",.1f"),
        middle(lambda result: result.tuples_per_s),
        middle(lambda result: result.words / result.seconds),
        f"{middle(lambda result: result.latency_p50_ms)} ms",
        f"{middle(lambda result: result.latency_p99_ms)} ms",
        f"{middle(lambda result: result.commit_p50_ms, ',.1f')} ms",
        f"{middle(lambda result: result.commit_p99_ms, ',.1f')} ms",
    ]


def main() -> int:
    """Measures and prints; returns 0, or 1 if a side failed or was not exact."""
    options = parse_arguments()
    corpus = corpus_of(options)
    try:
        measured = in_rounds(
            make_cases(options, corpus),
            measured_alone,
            options.rounds,
            shown=lambda case, found: (
                f"{case.lines:,} lines, {case.name}: {found.transactions_per_s:.1f} tx/s {found.details}"
            ),
        )
    except MeasurementError as error:
        print(error, file=sys.stderr)
        return 1
    for lines in dict.fromkeys(case.lines for case, _ in measured if isinstance(case, TxbatchCase)):
        print(f"\n{same_rows_section(lines, measured)}")
    print(f"\n{equal_rows_section(measured)}")
    write_json(options.json, describe(corpus), measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
