"""``txbatch bench``: measures txbatch next to other ways to the same answer, and writes a report.

Run it::

    txbatch bench --quick        # a first answer in under two minutes
    txbatch bench                # everything: several hours; stop it at any time, and run it again to continue

README.md in the folder above says what each figure means.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.corpus import build_corpus
from benchmarks.suite import machine
from benchmarks.suite.cells import SIZES, TASKS, Assignment, Grid, Measurement, cells
from benchmarks.suite.progress import Progress, described, duration
from benchmarks.suite.report import write_report
from benchmarks.suite.results_file import Results, ResultsError
from benchmarks.suite.rounds import Plan, measure_in_own_process, missing, run_rounds
from benchmarks.suite.sides.table import SIDES
from benchmarks.suite.workloads.table import TITLES
from state.printable import counted

RESULTS = "results.json"
MEGABYTES = 10.0
"""Of text: small enough that a transaction of a million lines has fewer different words than a transaction may hold."""
QUICK_SIDES = ("txbatch", "txbatch_columns", "foreach_batch_best", "redis_pipeline")
QUICK_BUDGET_S = 100.0


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="txbatch bench", description=(__doc__ or "").split(":", 1)[1].split("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="few cells, one short round each: under two minutes")
    add("--sides", nargs="+", choices=list(SIDES), metavar="SIDE", help=f"of {', '.join(SIDES)} (default all)")
    add(
        "--workloads", nargs="+", choices=list(TITLES), metavar="WORKLOAD", help=f"of {', '.join(TITLES)} (default all)"
    )
    add("--sizes", nargs="+", type=positive(int), metavar="TUPLES", help=f"per transaction (default {_listed(SIZES)})")
    add("--tasks", nargs="+", type=positive(int), metavar="N", help=f"(default {_listed(TASKS)})")
    add("--rounds", type=positive(int), metavar="N", help="of every cell (default 5; --quick 1)")
    add("--seconds", type=positive(float), metavar="S", help="length of a measurement (default 10; --quick 3)")
    add("--warm-up", type=positive(float), metavar="S", help="before it (default 6; --quick 3)")
    add("--budget", type=positive(float), metavar="S", help="begin nothing that would end later (--quick 100)")
    add("--results", type=Path, metavar="FILE", help="what to continue, or begin (default WORK_DIR/results.json)")
    add("--work-dir", type=Path, default=Path(".txbatch/bench"), help="text, data and report (default %(default)s)")
    add("--megabytes", type=positive(float), default=MEGABYTES, help="size of the text (default %(default)s)")
    add("--report", action="store_true", help="only write the report of what is in the results")
    return _with_defaults(parser.parse_args(arguments))


def positive(number: type[int] | type[float]) -> Callable[[str], float]:
    """Returns what reads a number above 0 from the command line."""

    def read(text: str) -> float:
        if not number(text) > 0:
            raise argparse.ArgumentTypeError(f"{text} is not greater than 0")
        return number(text)

    read.__name__ = "number"
    return read


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _with_defaults(options: argparse.Namespace) -> argparse.Namespace:
    """Fills in what was not said."""
    quick = options.quick
    defaults = {
        "sides": list(QUICK_SIDES if quick else SIDES),
        "workloads": ["word_count"] if quick else list(TITLES),
        "sizes": [1_000, 100] if quick else list(SIZES),
        "tasks": [2] if quick else list(TASKS),
        "rounds": 1 if quick else 5,
        "seconds": 3.0 if quick else 10.0,
        "warm_up": 3.0 if quick else 6.0,
        "budget": QUICK_BUDGET_S if quick else None,
        "results": options.work_dir / ("quick.json" if quick else RESULTS),
    }
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    return options


def make_grid(options: argparse.Namespace, present: Sequence[str]) -> Grid:
    """Returns what to measure, of the sides that are present."""
    return Grid(
        sides=present,
        workloads=options.workloads,
        sizes=options.sizes,
        tasks=options.tasks,
        latency_sizes=options.sizes[:1] if options.quick else options.sizes,
        latency_tasks=options.tasks if len(options.tasks) == 1 else [tasks for tasks in options.tasks if tasks == 2],
    )


def bench(options: argparse.Namespace, measure: Callable[[Assignment], Measurement]) -> int:
    """Measures what is missing and writes the report; returns the exit code."""
    for folder in (options.work_dir, options.results.parent):
        folder.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    about = machine.facts(corpus, options.seconds, options.warm_up)
    results = Results.read(options.results) if options.report else Results.opened(options.results, about)
    absent = {side: why for side in options.sides if (why := SIDES[side].missing())}
    wanted = cells(make_grid(options, [side for side in options.sides if side not in absent]))
    plan = Plan(
        rounds=options.rounds,
        corpus=corpus.folder,
        work_dir=str(options.work_dir.resolve()),
        seconds=options.seconds,
        warm_up_s=options.warm_up,
        budget_s=options.budget,
    )
    rest = []
    if not options.report:
        todo = len(missing(wanted, results, plan.rounds))
        longest = plan.budget_s if plan.budget_s is not None else todo * plan.expected_s()
        _say(f"{counted(todo, 'measurement')}, about {duration(min(longest, todo * plan.expected_s()))}")
        watcher = Progress(sys.stderr, time.monotonic)
        try:
            rest = run_rounds(wanted, results, plan, measure=measure, watcher=watcher, clock=time.monotonic)
        except KeyboardInterrupt:
            rest = missing(wanted, results, plan.rounds)
            _say("\nstopped")
    unmeasured = [f"{SIDES[side].title} was left out: {why}." for side, why in absent.items()]
    unmeasured += [f"not measured yet, run the command again: {described(cell)}" for cell in dict.fromkeys(rest)]
    shown, path = write_report(results, options.results.parent, unmeasured)
    print(shown)
    print(f"\nresults: {options.results}\nreport: {path}")
    return 1 if any(found.failure for found in results) else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(
    arguments: Sequence[str] | None = None,
    measure: Callable[[Assignment], Measurement] = measure_in_own_process,
) -> int:
    """Runs the command; returns 0, 1 if a measurement failed, 2 if the results cannot be continued."""
    try:
        return bench(parse_arguments(arguments), measure)
    except ResultsError as error:
        _say(f"txbatch bench: {error}")
        return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill ends it as Ctrl-C does
    sys.exit(main())
