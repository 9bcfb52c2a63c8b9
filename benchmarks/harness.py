"""One harness for all benchmarks: cases measured in alternating rounds, medians with their spread, table and JSON.

A benchmark says which cases it has, how one of them is measured, and which figures are shown. The order of the cases is
reversed in every other round, so that a machine that slows down slows all of them, and a round of two modes that stand
side by side compares runs that follow one another.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, TypeVar

from benchmarks.corpus import Corpus, build_corpus
from state.printable import counted

Case = TypeVar("Case")
Found = TypeVar("Found")
TIMEOUT_S = 1800.0
SHOWN_LINES = 20
WORK_DIR = Path(".txbatch/benchmark")


class MeasurementError(Exception):
    """A measurement failed, or what was stored is not exact; the message ends with the last output of its process."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over several rounds.

    Attributes:
        median: of the rounds.
        low: lowest round.
        high: highest round.
        rounds: how many.
    """

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def over(cls, values: Sequence[float]) -> Self:
        """Returns the spread of at least one value."""
        return cls(median(values), min(values), max(values), len(values))

    def cells(self, form: str = ",.0f") -> list[str]:
        """Returns two cells of a table: the median, and the lowest and the highest round."""
        return [format(self.median, form), f"{format(self.low, form)}-{format(self.high, form)}"]


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the nearest-rank percentile: always a measured value, never one in between."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan


def median(values: Sequence[float]) -> float:
    """Returns the middle value, or the mean of the two middle values."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def command_line(
    module: str,
    documentation: str | None,
    *,
    rounds: int,
    option: str = "--repeat",
    megabytes: float | None = None,
    has_json: bool = True,
    has_quick: bool = False,
) -> argparse.ArgumentParser:
    """Returns the parser of a benchmark, with the options that benchmarks share.

    Args:
        module: its name.
        documentation: of the module; the first line is shown.
        rounds: the default.
        option: of the number of rounds.
        megabytes: default size of its corpus; None if it has none.
        has_json: whether every single result can be written to a file.
        has_quick: whether it has one short round.
    """
    first_line = (documentation or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=first_line)
    add = parser.add_argument
    add(option, dest="rounds", type=int, default=rounds, metavar="N", help="rounds (default %(default)s)")
    if megabytes is not None:
        add("--megabytes", type=float, default=megabytes, help="size of the corpus (default %(default)s)")
        add("--work-dir", type=Path, default=WORK_DIR, help="corpus and data (default %(default)s)")
    if has_json:
        add("--json", type=Path, metavar="FILE", help="write every single result to FILE")
    if has_quick:
        add("--quick", action="store_true", help="one short round: shows that it works, not how fast it is")
    return parser


def corpus_of(options: argparse.Namespace) -> Corpus:
    """Returns the corpus that the options ask for, in their work folder, and says what is measured with."""
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    print(describe(corpus), flush=True)
    return corpus


def describe(corpus: Corpus | None = None) -> str:
    """Describes machine, versions and text, for later readers of the figures."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "redis", "hiredis", "msgpack"))
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    facts = f"{now}; {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {versions}"
    if corpus is None:
        return facts
    return (
        f"{facts}\ncorpus: {corpus.byte_count / 1e6:.0f} MB, {corpus.line_count:,} lines, {corpus.word_count:,} words, "
        f"{corpus.vocabulary:,} different; repeated {counted(corpus.repeated, 'time')}"
    )


def in_rounds(
    cases: Sequence[Case],
    measure: Callable[[Case], Found],
    rounds: int,
    *,
    shown: Callable[[Case, Found], str],
    warms_up: bool = False,
) -> list[tuple[Case, list[Found]]]:
    """Measures every case once a round, and says on standard error how each has ended.

    Args:
        cases: in the order of the first round.
        measure: makes one measurement.
        rounds: how many.
        shown: a case and its figures in words.
        warms_up: a round before the first does not count.

    Returns:
        Each case with what was measured, round by round.
    """
    measured: list[tuple[Case, list[Found]]] = [(case, []) for case in cases]
    for number in range(0 if warms_up else 1, rounds + 1):
        for case, found in measured if number % 2 else measured[::-1]:
            outcome = measure(case)
            if number:
                found.append(outcome)
            story = f"round {number}/{rounds}: {shown(case, outcome)} (load {os.getloadavg()[0]:.1f})"
            print(story, file=sys.stderr, flush=True)
    return measured


def write_json(path: Path | None, about: str, measured: Sequence[tuple[Any, Sequence[Any]]]) -> None:
    """Writes every single result, if there is a file to write to."""
    if path is None:
        return
    entries = [{"case": _plain(case), "results": [_plain(each) for each in found]} for case, found in measured]
    path.write_text(json.dumps({"about": about, "cases": entries}, indent=1), encoding="utf-8")


def _plain(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table with columns as wide as needed; the first column is text, the others are figures."""
    widths = [max(len(row[column]) for row in [headings, *rows]) for column in range(len(headings))]
    lines = []
    for row in [headings, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def in_own_process(module: str, argument: str) -> dict[str, Any]:
    """Runs a module in a process of its own, so that no side inherits a warm JVM, and returns the JSON it prints last.

    Raises:
        MeasurementError: the process failed or took too long; it and its children are ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, argument],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )
    try:
        answer, complaints = process.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise MeasurementError(f"{module} had no result after {TIMEOUT_S:.0f} s") from error
        raise
    if process.returncode:
        story = "\n".join(complaints.splitlines()[-SHOWN_LINES:])
        raise MeasurementError(f"{module} ended with exit code {process.returncode}:\n{story}")
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found
