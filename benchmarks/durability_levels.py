"""What does it cost to wait for a server's disk, or for a replica, before anything is released upstream?

Run it::

    python -m benchmarks.durability_levels
    python -m benchmarks.durability_levels --lines 100 --group 8 --rounds 10 --seconds 10

All runs share one warm Spark context; each level has a server of its own, of the same program: appendfsync everysec
for level memory, always for fsync, and everysec with a replica on this machine for replica. In a round each level runs
once, in alternating order, and is compared with level memory in the same round. README.md in this
folder says what each figure means.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product

import redis

from benchmarks.harness import command_line, corpus_of, in_rounds, median, table
from benchmarks.txbatch_side import warm_runs
from coordinator.transactional.options import RunOptions
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
    parser = command_line("durability_levels", __doc__, rounds=6, option="--rounds", megabytes=50.0, has_json=False)
    add = parser.add_argument
    add("--lines", type=int, default=243, help="lines per transaction (default %(default)s)")
    add("--window", type=int, default=128, help="transactions in flight (default %(default)s)")
    add("--group", type=int, nargs="+", default=[64, 1], help="most transactions per commit (default 64 1)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seconds", type=float, default=5.0, help="length of a run (default %(default)s)")
    return parser.parse_args(arguments)


def report(measured: Sequence[tuple[tuple[int, str], Sequence[float]]]) -> str:
    """Returns one row per group size and level: the median, and the median and spread of the rounds' ratios."""
    rates = dict(measured)
    rows = []
    for (group, level), found in measured:
        ratios = [mine / base for mine, base in zip(found, rates[group, "memory"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append([level, SYNCS[level], str(group), f"{median(found):.0f}", f"{median(ratios):.2f}", spread])
    return table(("durability", "appendfsync", "group", "tx/s", "/ memory", "spread"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints one row per group size and level."""
    options = parse_arguments(arguments)
    corpus = corpus_of(options)
    with warm_runs("durability", corpus, options) as runs, servers() as urls:

        def rate(case: tuple[int, str]) -> float:
            group, level = case
            bounds = RunOptions(max_spout_pending=options.window, commit_group_max=group, durability=level)
            _, done = runs.run(options.lines, urls[level], bounds)
            return done.committed / done.seconds

        measured = in_rounds(
            list(product(options.group, LEVELS)),
            rate,
            options.rounds,
            shown=lambda case, found: f"group {case[0]}, {case[1]}: {found:.1f} tx/s",
            warms_up=True,
        )
    print(f"{report(measured)}\n\n{options.rounds} rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
