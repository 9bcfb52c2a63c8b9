"""What a run costs: processor time as so much a wave, an attempt, a tuple and a key. Fitted to runs, tried on others.

Run it::

    python -m benchmarks.cost_model                                  # measures what is missing, fits, prints
    python -m benchmarks.cost_model --document docs/performance.md   # and writes that into the document

A wave is a Spark job, an attempt a transaction in it, a key a field that a transaction changes. The word count runs
with several sizes and windows; from the processor time of driver, Java, workers and server the coefficients of each
follow by least squares, none of them negative. Runs that took no part in the fit say how far to trust it. Processor
time is predicted, not the rate, because only that is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.corpus import Corpus, build_corpus
from benchmarks.harness import median
from benchmarks.process_tree import Role
from benchmarks.suite import machine
from benchmarks.suite.cells import Cell, Kind, Measurement
from benchmarks.suite.progress import Progress
from benchmarks.suite.results_file import Results, ResultsError
from benchmarks.suite.rounds import Plan, left_out, measure_in_own_process, run_rounds
from benchmarks.suite.text_input import distinct_words
from state.printable import counted

UNITS = ("wave", "attempt", "tuple", "key")
FITTED = (
    (20, 8),
    (20, 64),
    (20, 512),
    (100, 8),
    (100, 64),
    (100, 512),
    (1_000, 8),
    (1_000, 64),
    (10_000, 4),
    (10_000, 16),
)
"""(lines of a transaction, window) of the runs that the model is fitted to."""
HELD_BACK = ((50, 256), (300, 128), (500, 16), (3_000, 32))
"""Of those it is tried on."""
TASKS = 2
NEAR = 0.2
CORES = 16
WAVES_PER_S = 1 / 0.3
"""Of a run that sizes its waves by time."""
SERIAL = (Role.DRIVER, Role.SERVER)
"""What has one thread that does the work, however many cores there are."""
BEGIN, END = "<!-- cost model: begin -->", "<!-- cost model: end -->"


@dataclass(frozen=True, slots=True)
class Point:
    """One run.

    Attributes:
        name: for the report.
        amounts: waves, attempts, tuples and keys, in the order of `UNITS`.
        seconds: role -> processor seconds.
    """

    name: str
    amounts: tuple[float, float, float, float]
    seconds: Mapping[str, float]

    @property
    def total_s(self) -> float:
        """Processor seconds of all roles."""
        return sum(self.seconds.values())


Coefficients = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class CostModel:
    """The fitted model.

    Attributes:
        by_role: role -> seconds per wave, attempt, tuple and key.
    """

    by_role: Mapping[str, Coefficients]

    def predicted_s(self, amounts: Sequence[float]) -> float:
        """Returns the processor seconds of all roles."""
        return sum(_sum(costs, amounts) for costs in self.by_role.values())

    def error(self, point: Point) -> float:
        """Returns how far the prediction is from a run, as a part of what was measured; above 0 if it is too high."""
        return self.predicted_s(point.amounts) / point.total_s - 1


def fit(points: Sequence[Point]) -> CostModel:
    """Fits the model; every point counts by its relative error, so that small runs weigh as much as large ones.

    Args:
        points: at least as many as there are units; they have to differ in every one of them.

    Raises:
        ValueError: there are too few.
    """
    if len(points) < len(UNITS):
        raise ValueError(f"{len(points)} runs cannot tell {len(UNITS)} costs apart; measure more")
    weights = np.array([1 / point.total_s for point in points])
    amounts = np.array([point.amounts for point in points]) * weights[:, None]
    roles = dict.fromkeys(role for point in points for role in point.seconds)
    return CostModel(
        {role: _fitted(amounts, np.array([p.seconds.get(role, 0.0) for p in points]) * weights) for role in roles}
    )


def _fitted(amounts: np.ndarray, seconds: np.ndarray) -> Coefficients:
    """Returns the least squares without a negative coefficient: the best of all choices of those that are not 0."""
    best, smallest = np.zeros(len(UNITS)), float(seconds @ seconds)
    for count in range(1, len(UNITS) + 1):
        for chosen in map(list, combinations(range(len(UNITS)), count)):
            found = np.linalg.lstsq(amounts[:, chosen], seconds, rcond=None)[0]
            rest = amounts[:, chosen] @ found - seconds
            if (found >= 0).all() and float(rest @ rest) < smallest:
                best, smallest = np.zeros(len(UNITS)), float(rest @ rest)
                best[chosen] = found
    return tuple(float(cost) for cost in best)


@dataclass(frozen=True, slots=True)
class Limit:
    """What holds a larger machine back.

    Attributes:
        name: of the bottleneck.
        per_s: transactions per second that it allows.
    """

    name: str
    per_s: float


def limits(model: CostModel, lines: int, keys: float, cores: int = CORES) -> list[Limit]:
    """Returns what limits the word count on a machine with this number of cores, the tightest first.

    Driver and server do their work in one thread each; Java and workers share all other cores. A wave has as many tasks
    as there are cores, so it costs Java and workers as many times more than it did with `TASKS`.

    Args:
        model: fitted with `TASKS`.
        lines: of a transaction.
        keys: that it changes.
        cores: of the machine.
    """
    found = []
    shared = [0.0] * len(UNITS)
    for role, costs in model.by_role.items():
        if role in {serial.value for serial in SERIAL}:
            found.append(Limit(f"{role}, one thread", _rate(costs, lines, keys, cores=1)))
        else:
            per_wave = costs[0] * cores / TASKS
            shared = [mine + more for mine, more in zip(shared, (per_wave, *costs[1:]), strict=True)]
    free = cores - len(SERIAL)
    found.append(Limit(f"Java and workers, {free} cores", _rate(tuple(shared), lines, keys, cores=free)))
    return sorted(found, key=lambda limit: limit.per_s)


def _rate(costs: Coefficients, lines: int, keys: float, cores: int) -> float:
    """Returns how many transactions this number of cores can do, after what the waves take."""
    per_transaction = _sum(costs[1:], (1, lines, keys))
    left = max(0.0, cores - costs[0] * WAVES_PER_S)
    return left / per_transaction if per_transaction else float("inf")


def _sum(costs: Iterable[float], amounts: Iterable[float]) -> float:
    return sum(cost * amount for cost, amount in zip(costs, amounts, strict=True))


def point(cell: Cell, measured: Sequence[Measurement], keys: float) -> Point:
    """Returns the point of a cell's rounds: per transaction, the median of each figure."""
    roles = dict.fromkeys(role for found in measured for role in found.processor_s)
    waves = median([found.details["waves"] / found.transactions for found in measured])
    return Point(
        name=f"{cell.tuples:,} lines, window {cell.window}",
        amounts=(waves, 1.0, float(cell.tuples), keys),
        seconds={
            role: median([found.processor_s.get(role, 0.0) / found.transactions for found in measured])
            for role in roles
        },
    )


def make_cells(pairs: Iterable[tuple[int, int]]) -> list[Cell]:
    """Returns the cells for pairs of lines and window."""
    return [Cell(Kind.RATE.value, "txbatch", "word_count", lines, TASKS, window) for lines, window in pairs]


def points(results: Results, corpus: Corpus, pairs: Iterable[tuple[int, int]]) -> list[Point]:
    """Returns the points of all pairs that were measured."""
    chosen = [results.of(cell) for cell in make_cells(pairs)]
    return [
        point(found.cell, [entry.measurement for entry in found.rounds], distinct_words(corpus, found.cell.tuples))
        for found in chosen
        if found.rounds
    ]


def described(results: Results, corpus: Corpus) -> str:
    """Returns the model, its errors and the next bottleneck as Markdown."""
    fitted, held_back = points(results, corpus, FITTED), points(results, corpus, HELD_BACK)
    model = fit(fitted)
    at, loads = [], []
    for found in results:
        at += [entry.at for entry in found.rounds]
        loads += [entry.load for entry in found.rounds]
    cores = results.about["machine"]["cores"]
    fewest = min(len(found.rounds) for found in results if found.rounds)
    busy = " The machine was busy with other work: measure again on a quiet one." if max(loads) > 2 * cores else ""
    near = sum(abs(model.error(entry)) <= NEAR for entry in held_back)
    lines = [
        f"Measured {min(at)[:10]} on {cores} cores, load average {min(loads):.1f} to {max(loads):.1f}; "
        f"{counted(len(fitted) + len(held_back), 'kind')} of runs, {counted(fewest, 'round')}, {TASKS} tasks; "
        f"code {results.about['code']}.{busy}",
        "",
        f"Within {NEAR:.0%} of what was measured: {near} of the {len(held_back)} runs that were held back.",
        "",
        "| processor time of | a wave, ms | an attempt, ms | a tuple, µs | a key, µs |",
        "|---|---:|---:|---:|---:|",
        *(_cost_row(role, costs) for role, costs in _with_sum(model)),
        "",
        "| run held back | measured, ms a transaction | predicted | error |",
        "|---|---:|---:|---:|",
        *(_error_row(model, entry) for entry in held_back),
        "",
        f"On {CORES} cores, with {CORES} tasks and waves of 0.3 s:",
        "",
        "| lines of a transaction | next bottleneck | tx/s it allows | then | tx/s |",
        "|---:|---|---:|---|---:|",
        *(_limit_row(model, size, distinct_words(corpus, size)) for size in (20, 100, 1_000, 10_000)),
    ]
    return "\n".join(lines)


def _with_sum(model: CostModel) -> list[tuple[str, Coefficients]]:
    total = tuple(sum(costs) for costs in zip(*model.by_role.values(), strict=True))
    return [*model.by_role.items(), ("all", total)]


def _cost_row(role: str, costs: Coefficients) -> str:
    wave, attempt, tuple_, key = costs
    return f"| {role} | {1e3 * wave:.1f} | {1e3 * attempt:.2f} | {1e6 * tuple_:.2f} | {1e6 * key:.2f} |"


def _error_row(model: CostModel, entry: Point) -> str:
    measured, predicted = 1e3 * entry.total_s, 1e3 * model.predicted_s(entry.amounts)
    return f"| {entry.name} | {measured:.2f} | {predicted:.2f} | {model.error(entry):+.0%} |"


def _limit_row(model: CostModel, lines: int, keys: float) -> str:
    first, second = limits(model, lines, keys)[:2]
    return f"| {lines:,} | {first.name} | {first.per_s:,.0f} | {second.name} | {second.per_s:,.0f} |"


def with_section(document: str, section: str) -> str:
    """Returns a document with its part about the model replaced.

    Raises:
        ValueError: the document does not have both marks, in order.
    """
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the document needs the lines {BEGIN!r} and {END!r}, in this order")
    return f"{before}{begin}\n\n{section}\n\n{end}{after}"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost_model", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--rounds", type=int, default=3, help="of every run (default %(default)s)")
    add("--seconds", type=float, default=6.0, help="length of a measurement (default %(default)s)")
    add("--warm-up", type=float, default=5.0, help="before it (default %(default)s)")
    add("--results", type=Path, metavar="FILE", help="what to continue, or begin (default WORK_DIR/costs.json)")
    add("--work-dir", type=Path, default=Path(".txbatch/bench"), help="text and data (default %(default)s)")
    add("--megabytes", type=float, default=10.0, help="size of the text (default %(default)s)")
    add("--document", type=Path, metavar="FILE", help="write the result into FILE, between its marks")
    return parser.parse_args(arguments)


def main() -> int:
    """Measures, fits and prints; returns 0, 1 if a run failed, 2 if the results cannot be continued."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    about = machine.facts(corpus, options.seconds, options.warm_up)
    plan = Plan(
        rounds=options.rounds,
        corpus=corpus.folder,
        work_dir=str(options.work_dir.resolve()),
        seconds=options.seconds,
        warm_up_s=options.warm_up,
    )
    try:
        results = Results.opened(options.results or options.work_dir / "costs.json", about)
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 2
    cells = make_cells([*FITTED, *HELD_BACK])
    watcher = Progress(sys.stderr, time.monotonic)
    run_rounds(cells, results, plan, measure=measure_in_own_process, watcher=watcher, clock=time.monotonic)
    section = described(results, corpus)
    print(section)
    if options.document:
        document = options.document.read_text(encoding="utf-8")
        options.document.write_text(with_section(document, section), encoding="utf-8")
    return 1 if list(left_out(results)) else 0


if __name__ == "__main__":
    sys.exit(main())
