"""What does a transaction cost at each level of durability, in processor time? In process, without Spark.

Run it::

    python -m benchmarks.durability_processor_time
    python -m benchmarks.durability_processor_time --transactions 300 --rounds 9 --group 64 8 1

The figures of a busy machine are rates of the machine; processor time is the run's own. It is measured of this process,
which does all that driver and tasks do, and of the level's server (INFO cpu). In a round each level runs once, in
alternating order; `again` is level memory once more, on a server of its own: how far it is from
`memory` is the noise. A commit is waited for by nobody but the spout, as in every run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product

import redis

from benchmarks.durability_levels import SYNCS, server, servers
from benchmarks.harness import command_line, corpus_of, in_rounds, median, table
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from examples.word_count import topology

LEVELS = ("memory", "again", "fsync", "replica")
Figures = tuple[float, float, float]
"""Milliseconds of this process and of the server for a transaction, and transactions a second."""


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line(
        "durability_processor_time", __doc__, rounds=7, option="--rounds", megabytes=10.0, has_json=False
    )
    add = parser.add_argument
    add("--lines", type=int, default=100, help="lines per transaction (default %(default)s)")
    add("--transactions", type=int, default=150, help="of each run (default %(default)s)")
    add("--group", type=int, nargs="+", default=[8, 1], help="most transactions per commit (default 8 1)")
    return parser.parse_args(arguments)


def measured(url: str, level: str, group: int, pattern: str, options: argparse.Namespace) -> Figures:
    """Runs a fixed number of transactions on empty state."""
    with redis.Redis.from_url(url) as client, LocalCluster(seed=1) as cluster:
        client.flushall()
        cluster.client = client
        chosen = RunOptions(
            max_spout_pending=2 * group,
            commit_group_max=group,
            durability="memory" if level == "again" else level,
            last_txid=options.transactions,
        )
        before, started_s, used_s = server_s(client), time.monotonic(), time.process_time()
        cluster.submit(topology(pattern, options.lines, "word_count"), options=chosen).run_until_idle()
        used_s, seconds = time.process_time() - used_s, time.monotonic() - started_s
        each = options.transactions
        return 1000 * used_s / each, 1000 * (server_s(client) - before) / each, each / seconds


def server_s(client: redis.Redis) -> float:
    """Processor time of a server so far, in seconds."""
    cpu = client.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark and prints one row per group size and level."""
    options = parse_arguments(arguments)
    pattern = f"{corpus_of(options).folder}/*.txt"
    with servers() as of_levels, server(SYNCS["memory"]) as again:
        urls = {**of_levels, "again": again}
        found = in_rounds(
            list(product(options.group, LEVELS)),
            lambda case: measured(urls[case[1]], case[1], case[0], pattern, options),
            options.rounds,
            shown=lambda case, figures: f"{case[0]}, {case[1]}: {figures}",
            warms_up=True,
        )
    rows = [
        [level, str(group), *(f"{median([each[place] for each in figures]):.2f}" for place in range(3))]
        for (group, level), figures in found
    ]
    print(table(("durability", "group", "this process, ms", "server, ms", "tx/s"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
