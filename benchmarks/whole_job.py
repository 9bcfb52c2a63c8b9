"""Measures whole jobs side by side: each in a fresh process on a fresh server, from its start to its end.

Times include start-up. Processor time is that of all processes of the job, the server's and Java's included, which says
more than the time on a machine that has other work to do.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Spread, describe, in_rounds, median, table, write_json
from benchmarks.process_tree import processor_seconds

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE_S = 0.2


@dataclass(frozen=True)
class Side:
    """One of the jobs that are compared.

    Attributes:
        command: returns what Python is started with, given the folder of the server's data.
        is_exact: whether the server of that folder holds the right answer.
    """

    command: Callable[[Path], list[str]]
    is_exact: Callable[[Path], bool]


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        seconds: of the whole process.
        processor_s: of the process and all it has started, as sampled; helpers that end early are missing.
        is_exact: whether its answer is right.
    """

    seconds: float
    processor_s: float
    is_exact: bool

    def __str__(self) -> str:
        answer = "exact" if self.is_exact else "WRONG"
        return f"{self.seconds:.1f} s, {self.processor_s:.1f} s of processor time, {answer}"


def compare(sides: Mapping[str, Side], *, rounds: int, results: Path | None = None) -> int:
    """Measures all sides in turn, prints the medians, and returns the exit code: 1 for a wrong answer.

    Args:
        sides: by name.
        rounds: of each.
        results: a file for every single run, as JSON.

    Raises:
        SystemExit: a job failed; with the end of its output.
    """
    measured = in_rounds(
        list(sides), lambda name: measure(name, sides[name]), rounds, shown=lambda name, run: f"{name}: {run}"
    )
    rows = [
        [name, *Spread.over([run.seconds for run in runs]).cells(".1f"), f"{median([r.processor_s for r in runs]):.1f}"]
        for name, runs in measured
    ]
    print(table(("side", "seconds", "spread", "processor seconds"), rows))
    write_json(results, describe(), measured)
    return 0 if all(run.is_exact for _, runs in measured for run in runs) else 1


def measure(name: str, side: Side) -> Measured:
    """Runs one side to its end, and looks whether its answer is right."""
    with tempfile.TemporaryDirectory(prefix="txbatch-job-") as temporary:
        data_dir, log = Path(temporary) / "data", Path(temporary) / "log"
        command = [sys.executable, *side.command(data_dir)]
        started_s, processor_s = time.monotonic(), 0.0
        with log.open("wb") as output, subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output) as job:
            while job.poll() is None:
                processor_s = max(processor_s, processor_seconds(job.pid))
                time.sleep(SAMPLE_S)
        seconds = time.monotonic() - started_s
        if job.returncode:
            raise SystemExit(f"{name} ended with {job.returncode}:\n{log.read_text(errors='replace')[-4000:]}")
        return Measured(round(seconds, 1), round(processor_s, 1), side.is_exact(data_dir))
