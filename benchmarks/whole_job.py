"""Measures whole jobs side by side: each in a fresh process on a fresh server, from its start to its end.

Times include start-up. Processor time is that of all processes of the job, the server's and Java's included, which says
more than the time on a machine that has other work to do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

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
        side: its name.
        seconds: of the whole process.
        processor_s: of the process and all it has started, as sampled; helpers that end early are missing.
        is_exact: whether its answer is right.
        load: average of the last minute at its end.
    """

    side: str
    seconds: float
    processor_s: float
    is_exact: bool
    load: float

    def __str__(self) -> str:
        verdict = "exact" if self.is_exact else "WRONG"
        return f"{self.side:16} {self.seconds:6.1f} s {self.processor_s:6.1f} s CPU {verdict}, load {self.load}"


def compare(sides: Mapping[str, Side], *, repeat: int, results: Path | None = None) -> int:
    """Measures all sides in turn, prints every run and the medians, and returns the exit code: 1 for a wrong answer.

    Args:
        sides: by name.
        repeat: rounds; every other one goes backwards.
        results: a file for every single run, as JSON.

    Raises:
        SystemExit: a job failed; with the end of what it said.
    """
    runs: list[Measured] = []
    for number in range(repeat):
        for name in sides if number % 2 == 0 else reversed(list(sides)):
            runs.append(measure(name, sides[name]))
            print(runs[-1], flush=True)
    for name in sides:
        seconds, processor_s = medians(runs, name)
        print(f"{name:16} median {seconds:.1f} s, {processor_s:.1f} s of processor time")
    if results:
        results.write_text(json.dumps([asdict(each) for each in runs], indent=1), encoding="utf-8")
    return 0 if all(each.is_exact for each in runs) else 1


def medians(runs: Sequence[Measured], side: str) -> tuple[float, float]:
    """Returns the medians of a side: seconds, and seconds of processor time."""
    own = [each for each in runs if each.side == side]
    return median(each.seconds for each in own), median(each.processor_s for each in own)


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
        return Measured(
            name, round(seconds, 1), round(processor_s, 1), side.is_exact(data_dir), round(os.getloadavg()[0], 1)
        )
