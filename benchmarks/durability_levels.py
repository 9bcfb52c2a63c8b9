"""What does it cost to wait for a server's disk, or for a replica, before anything is released upstream?

Run it::

    python -m benchmarks.durability_levels
    python -m benchmarks.durability_levels --lines 100 --group 8 --rounds 10 --seconds 10

All runs share one warm Spark context; each level has a server of its own, of the same program: appendfsync everysec
for level memory, always for fsync, and everysec with a replica on this machine for replica. In a round each level runs
once, in an order that turns from round to round, and is compared with level memory in the same round. README.md in this
folder says what each figure means.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

import redis

from benchmarks.commit_throughput import describe
from benchmarks.corpus import build_corpus
from benchmarks.input_passes import link_passes
from benchmarks.measurement import median
from benchmarks.report import table
from benchmarks.txbatch_side import PASS_COUNT, Deadline
from coordinator.engines.spark.session import close_context, open_context
from coordinator.run import run
from coordinator.transactional.options import RunOptions
from examples.word_count import topology
from state.redis_server.program import find_server_program

LEVELS = ("memory", "fsync", "replica")
SYNCS = {"memory": "everysec", "fsync": "always", "replica": "everysec"}
START_TIMEOUT_S = 20.0


@contextmanager
def server(appendfsync: str, *options: str) -> Iterator[str]:
    """Runs a server with an append-only file in a temporary folder and gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="txbatch-") as folder:
        command = [find_server_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", appendfsync, "--repl-diskless-sync-delay", "0", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            url = f"redis://127.0.0.1:{port}"
            await_answer(url)
            yield url
        finally:
            process.kill()
            process.wait()


def await_answer(url: str) -> None:
    """Returns once a server answers."""
    deadline = time.monotonic() + START_TIMEOUT_S
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return


@contextmanager
def servers() -> Iterator[dict[str, str]]:
    """Runs a server for each level, and a replica that has caught up."""
    with server("everysec") as memory, server("always") as fsync, server("everysec") as primary:
        port = primary.rpartition(":")[2]
        with server("everysec", "--replicaof", f"127.0.0.1 {port}"), redis.Redis.from_url(primary) as client:
            client.set("in", "step")
            while client.execute_command("WAIT", 1, 1000) != 1:  # bounded by the server's own start
                pass
            yield {"memory": memory, "fsync": fsync, "replica": primary}


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.durability_levels", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--megabytes", type=float, default=50.0, help="size of the corpus (default %(default)s)")
    add("--lines", type=int, default=243, help="lines per transaction (default %(default)s)")
    add("--window", type=int, default=128, help="transactions in flight (default %(default)s)")
    add("--group", type=int, nargs="+", default=[64, 1], help="most transactions per commit (default 64 1)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="length of a run (default %(default)s)")
    add("--rounds", type=int, default=6, help="runs of each level (default %(default)s)")
    add("--work-dir", type=Path, default=Path(".txbatch/benchmark"), help="corpus (default %(default)s)")
    return parser.parse_args(arguments)


@dataclass(frozen=True, slots=True)
class Bench:
    """What all runs share: the text, the Spark context, a server for each level, and the options."""

    pattern: str
    context: Any
    urls: dict[str, str]
    options: argparse.Namespace
    numbers: count[int]

    def rate(self, level: str, group: int) -> float:
        """Runs the word count for a while on empty state and returns transactions per second."""
        deadline = Deadline(self.options.seconds)
        done = run(
            topology(self.pattern, self.options.lines, f"word_count_{next(self.numbers)}"),
            redis_url=self.urls[level],
            spark=self.context,
            options=RunOptions(max_spout_pending=self.options.window, commit_group_max=group, durability=level),
            on_start=deadline.start,
            on_progress=deadline.check,
        )
        return done.committed / done.seconds

    def rounds(self) -> dict[tuple[int, str], list[float]]:
        """Runs every level once a round; an extra round before the first warms up and is discarded."""
        rates: dict[tuple[int, str], list[float]] = {}
        for number in range(self.options.rounds + 1):
            turned = LEVELS[number % len(LEVELS) :] + LEVELS[: number % len(LEVELS)]
            for group, level in product(self.options.group, turned):
                rate = self.rate(level, group)
                said = f"round {number}/{self.options.rounds}: group {group}, {level}: {rate:.1f} tx/s"
                print(f"{said} (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)
                if number:
                    rates.setdefault((group, level), []).append(rate)
        return rates


def report(rates: dict[tuple[int, str], list[float]]) -> str:
    """Returns one row per group size and level: the median, and the median and spread of the rounds' ratios."""
    rows = []
    for (group, level), found in sorted(rates.items(), key=lambda item: (-item[0][0], LEVELS.index(item[0][1]))):
        ratios = [mine / base for mine, base in zip(found, rates[group, "memory"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append([level, SYNCS[level], str(group), f"{median(found):.0f}", f"{median(ratios):.2f}", spread])
    return table(("durability", "appendfsync", "group", "tx/s", "/ memory", "spread"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints one row per group size and level."""
    options = parse_arguments(arguments)
    corpus = build_corpus(options.work_dir / "corpus", options.megabytes)
    folder = Path(tempfile.mkdtemp(prefix="txbatch-benchmark-"))
    context = open_context("durability", options.master, {})
    try:
        pattern = link_passes(corpus, folder / "input", PASS_COUNT)
        with servers() as urls:
            rates = Bench(pattern, context, urls, options, count()).rounds()
    finally:
        close_context(context)
        shutil.rmtree(folder)
    print(f"{report(rates)}\n\n{options.rounds} rounds; {describe(corpus)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
