"""Do memory, disk and open files stay flat? Samples the word count over thousands of small transactions.

Run it::

    python -m benchmarks.resources --transactions 100000 --lines 20 --window 0 --plot resources.png

The input is one small corpus, read repeatedly: after its first pass no word is new, so whatever still grows is a
leak and not the counts. The first tenth is start-up; it is shown but not judged. Roles have few processes each: one
driver, Java and server, and as many workers as Spark runs tasks at a time, plus the daemon that forks them.
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
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import build_corpus, copy_passes
from benchmarks.harness import table
from benchmarks.process_tree import Role, Usage, usage_by_role
from benchmarks.resource_samples import Sample, Samples, at_marks, folder_size
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples.word_count import topology
from state.printable import counted

if TYPE_CHECKING:
    from coordinator.transactional.coordinator import Coordinator
    from coordinator.watching.statistics.run_statistics import RunStatistics

MEBIBYTE = 2**20
WINDOW_MAX = 2048
"""Most transactions in flight of a run that decides by itself."""


@dataclass(slots=True)
class Sampler:
    """Samples this process and its descendants during a run, from its own thread.

    Attributes:
        limit: the run is drained after this many transactions,
        longest_s: or after this many seconds.
        spark_folder: Spark's local folder.
        data_folder: the server's data.
        interval_s: seconds between samples.
        samples: the samples so far.
    """

    limit: int
    longest_s: float
    spark_folder: Path
    data_folder: Path
    interval_s: float
    samples: Samples = field(default_factory=Samples)
    _committed: int = 0
    _started_s: float = 0.0
    _coordinator: Coordinator | None = None
    _ended: threading.Event = field(default_factory=threading.Event)

    def start(self, coordinator: Coordinator) -> None:
        """Starts sampling, when the run begins."""
        self._coordinator = coordinator
        self._started_s = time.monotonic()
        threading.Thread(target=self._look, daemon=True).start()

    def progress(self, statistics: RunStatistics) -> None:
        """Notes the progress of the run, and drains it at a limit."""
        self._committed = statistics.committed
        is_late = time.monotonic() - self._started_s >= self.longest_s
        if (self._committed >= self.limit or is_late) and self._coordinator is not None:
            self._coordinator.drain()
            self._ended.set()

    def _look(self) -> None:
        while not self._ended.wait(self.interval_s):
            files, size = folder_size(self.spark_folder)
            sample = Sample(
                at_s=time.monotonic() - self._started_s,
                committed=self._committed,
                usage=usage_by_role(os.getpid()),
                spark_files=files,
                spark_bytes=size,
                server_bytes=folder_size(self.data_folder)[1],
            )
            self.samples.add(sample)


def report(samples: Sequence[Sample], limit: int) -> str:
    """Returns memory, open files and disk at the marks, and their maxima from the first mark on."""
    chosen = at_marks(samples, limit)
    later = [sample for sample in samples if sample.committed >= chosen[0].committed]
    headings = ("", *(f"{sample.committed:,}" for sample in chosen), "largest", "2nd half")
    rows = []
    for role in Role:
        for name, unit in (("resident_bytes", MEBIBYTE), ("open_files", 1), ("process_count", 1)):
            figures = [getattr(sample.usage.get(role, Usage()), name) / unit for sample in chosen]
            largest = max(getattr(sample.usage.get(role, Usage()), name) for sample in later) / unit
            labels = {"resident_bytes": "memory, MiB", "open_files": "open files", "process_count": "processes"}
            rows.append([f"{role.value}: {labels[name]}", *_shown(figures, largest)])
    # Spark's files are those of the waves under way, so their number fluctuates
    for label, attribute, unit in (
        ("Spark's local files", "spark_files", 1),
        ("Spark's local files, MiB", "spark_bytes", MEBIBYTE),
        ("server's data, MiB", "server_bytes", MEBIBYTE),
    ):
        figures = [getattr(sample, attribute) / unit for sample in chosen]
        rows.append([label, *_shown(figures, max(getattr(sample, attribute) for sample in later) / unit)])
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
    add("--minutes", type=float, default=60.0, help="the run is drained after this long (default %(default)s)")
    add("--window", type=int, default=128, help="transactions in flight, 0: by time (default %(default)s)")
    add("--group", type=int, default=64, help="most transactions per commit (default %(default)s)")
    add("--master", default="local[2]")
    add("--megabytes", type=float, default=5.0, help="size of the repeated corpus (default %(default)s)")
    add("--interval", type=float, default=0.5, help="seconds between samples (default %(default)s)")
    add("--driver-memory", default="512m", help="JVM memory, small so that its heap fills early (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"))
    add("--plot", type=Path, metavar="FILE", help="draw every sample into FILE, a PNG; needs matplotlib")
    add("--json", type=Path, metavar="FILE", help="write every sample to FILE")
    return parser.parse_args(arguments)


def main() -> int:
    """Runs, samples and prints."""
    options = parse_arguments()
    options.work_dir.mkdir(parents=True, exist_ok=True)
    corpus = build_corpus(options.work_dir / f"corpus-{options.megabytes:g}mb", options.megabytes)
    passes = 2 + (options.transactions + (options.window or WINDOW_MAX)) * options.lines // corpus.line_count
    folder = Path(tempfile.mkdtemp(prefix="resources-", dir=options.work_dir))
    spark_folder = folder / "spark"
    sampler = Sampler(options.transactions, 60 * options.minutes, spark_folder, folder / "data", options.interval)
    began = time.monotonic()
    try:
        statistics = run(
            topology(copy_passes(corpus, folder / "input", passes), options.lines),
            data_dir=folder / "data",
            master=options.master,
            conf={
                "spark.local.dir": str(spark_folder.resolve()),
                "spark.driver.memory": options.driver_memory,
            },
            options=RunOptions(max_spout_pending=options.window or None, commit_group_max=options.group),
            on_start=sampler.start,
            on_progress=sampler.progress,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    samples = sampler.samples.kept
    print(
        f"{statistics.committed:,} transactions of {options.lines} lines in {time.monotonic() - began:.0f} s, "
        f"{counted(statistics.waves, 'wave')}, {counted(statistics.failed_attempts, 'failed attempt')}; "
        f"{counted(len(samples), 'sample')}"
    )
    if not samples:
        print("the run ended before the first sample; give it more transactions", file=sys.stderr)
        return 1
    print(f"\n{report(samples, min(options.transactions, statistics.committed))}")
    if options.json:
        options.json.write_text(json.dumps([_entry(sample) for sample in samples], indent=1), encoding="utf-8")
    if options.plot:
        from benchmarks.resource_plot import draw

        draw(samples, options.plot)
    return 0


def _entry(sample: Sample) -> dict[str, Any]:
    """Returns a sample as JSON; a role is [processes, bytes of memory, open files]."""
    figures = {
        name: getattr(sample, name) for name in ("at_s", "committed", "spark_files", "spark_bytes", "server_bytes")
    }
    roles = {
        role.value: [usage.process_count, usage.resident_bytes, usage.open_files]
        for role, usage in sample.usage.items()
    }
    return {**figures, **roles}


if __name__ == "__main__":
    sys.exit(main())
