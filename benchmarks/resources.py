"""Do memory and open files stay flat? Samples the word count over thousands of small transactions.

Run it::

    python -m benchmarks.resources --transactions 5000 --lines 100

The input is one small corpus, read repeatedly: after its first pass no word is new, so whatever still grows is a
leak and not the counts. The first tenth is start-up; it is shown but not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import build_corpus
from benchmarks.input_passes import link_passes
from benchmarks.process_tree import Role, Usage, usage_by_role
from benchmarks.report import table
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples.word_count import topology
from state.printable import counted

if TYPE_CHECKING:
    from coordinator.transactional.coordinator import Coordinator
    from coordinator.transactional.run_summary import RunStatistics

MARKS = (0.1, 0.25, 0.5, 0.75, 1.0)
MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a run.

    Attributes:
        committed: transactions committed so far.
        usage: what each role used.
        shuffle_files: files in Spark's local folder.
    """

    committed: int
    usage: dict[Role, Usage]
    shuffle_files: int


@dataclass(slots=True)
class Sampler:
    """Samples this process and its descendants during a run, from its own thread.

    Attributes:
        limit: the run is drained after this many transactions.
        spark_folder: Spark's local folder.
        interval_s: seconds between samples.
        samples: the samples so far.
    """

    limit: int
    spark_folder: Path
    interval_s: float
    samples: list[Sample] = field(default_factory=list)
    _committed: int = 0
    _coordinator: Coordinator | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self, coordinator: Coordinator) -> None:
        """Starts sampling, when the run begins."""
        self._coordinator = coordinator
        threading.Thread(target=self._look, daemon=True).start()

    def progress(self, statistics: RunStatistics) -> None:
        """Notes the progress of the run, and drains it at the limit."""
        self._committed = statistics.committed
        if self._committed >= self.limit and self._coordinator is not None:
            self._coordinator.drain()
            self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(self.interval_s):
            files = sum(len(names) for _, _, names in os.walk(self.spark_folder))
            self.samples.append(Sample(self._committed, usage_by_role(os.getpid()), files))


def at_marks(samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Returns the first sample at or after each mark, or else the last one."""
    return [next((sample for sample in samples if sample.committed >= mark * limit), samples[-1]) for mark in MARKS]


def report(samples: Sequence[Sample], limit: int) -> str:
    """Returns memory and open files of each role at the marks, and their maxima from the first mark on."""
    chosen = at_marks(samples, limit)
    later = [sample for sample in samples if sample.committed >= chosen[0].committed]
    headings = ("", *(f"{sample.committed:,}" for sample in chosen), "largest", "2nd half")
    rows = []
    for role in Role:
        for name, unit in (("resident_bytes", MEBIBYTE), ("open_files", 1), ("process_count", 1)):
            figures = [getattr(sample.usage.get(role, Usage()), name) / unit for sample in chosen]
            largest = max(getattr(sample.usage.get(role, Usage()), name) for sample in later) / unit
            label = {"resident_bytes": "memory, MiB", "open_files": "open files", "process_count": "processes"}
            rows.append([f"{role.value}: {label[name]}", *_shown(figures, largest)])
    files = [f"{sample.shuffle_files:,}" for sample in chosen]  # of the waves under way, so the number fluctuates
    rows.append(["Spark's local files", *files, f"{max(sample.shuffle_files for sample in later):,}", "-"])
    return table(headings, rows)


def _shown(figures: Sequence[float], largest: float) -> list[str]:
    """Returns the figures, the largest, and the growth over the second half."""
    growth = f"{figures[-1] / figures[2] - 1:+.1%}" if figures[2] else "-"
    return [*(f"{figure:,.0f}" for figure in figures), f"{largest:,.0f}", growth]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resources", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--transactions", type=int, default=5000)
    add("--lines", type=int, default=100, help="lines per transaction (default %(default)s)")
    add("--window", type=int, default=128)
    add("--group", type=int, default=64)
    add("--master", default="local[2]")
    add("--megabytes", type=float, default=5.0, help="size of the repeated corpus (default %(default)s)")
    add("--interval", type=float, default=0.5, help="seconds between samples (default %(default)s)")
    add("--driver-memory", default="512m", help="JVM memory, small so that its heap fills early (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"))
    add("--json", type=Path, metavar="FILE", help="write every sample to FILE")
    return parser.parse_args(arguments)


def main() -> int:
    """Runs, samples and prints."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    passes = 2 + (options.transactions + options.window) * options.lines // corpus.line_count
    folder = Path(tempfile.mkdtemp(prefix="resources-", dir=options.work_dir))
    spark_folder = folder / "spark"
    sampler = Sampler(options.transactions, spark_folder, options.interval)
    began = time.monotonic()
    try:
        statistics = run(
            topology(link_passes(corpus, folder / "input", passes), options.lines),
            data_dir=folder / "data",
            master=options.master,
            conf={
                "spark.local.dir": str(spark_folder.resolve()),
                "spark.driver.memory": options.driver_memory,
            },
            options=RunOptions(max_spout_pending=options.window, commit_group_max=options.group),
            on_start=sampler.start,
            on_progress=sampler.progress,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{statistics.committed:,} transactions of {options.lines} lines in {time.monotonic() - began:.0f} s, "
        f"{counted(statistics.waves, 'wave')}, {counted(statistics.failed_attempts, 'failed attempt')}; "
        f"{counted(len(sampler.samples), 'sample')}\n\n{report(sampler.samples, options.transactions)}"
    )
    if options.json:
        entries = [
            {
                "committed": sample.committed,
                "shuffle_files": sample.shuffle_files,
                **{
                    role.value: [usage.process_count, usage.resident_bytes, usage.open_files]
                    for role, usage in sample.usage.items()
                },
            }
            for sample in sampler.samples
        ]
        options.json.write_text(json.dumps(entries, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
