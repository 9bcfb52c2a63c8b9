"""What processor time do 200 transactions of the word count take on this PySpark, on a warm context?

Run it::

    python -m benchmarks.spark_versions

`make matrix` runs it on each version. Waves hold four transactions, so that what each task costs shows: Spark's
own work, and whatever a worker does before and after it. The last line is for its table.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time

from benchmarks.corpus import count_first_lines_of_passes
from benchmarks.harness import command_line, corpus_of
from benchmarks.process_tree import Role, processor_seconds_by_role
from benchmarks.txbatch_side import read_counts, warm_runs
from coordinator.transactional.options import RunOptions
from state.redis_server.embedded import EmbeddedServer

TRANSACTIONS, LINES, WINDOW = 200, 100, 4
ROLES = (Role.DRIVER, Role.JAVA, Role.WORKERS)


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("spark_versions", __doc__, rounds=2, option="--rounds", megabytes=2.0, has_json=False)
    parser.add_argument("--master", default="local[2]", help="Spark master (default %(default)s)")
    return parser.parse_args()


def main() -> int:
    """Measures the last of some rounds and prints; returns 0, or 1 if a result was not exact."""
    options = parse_arguments()
    options.seconds = float("inf")
    run_options = RunOptions(max_spout_pending=WINDOW, last_txid=TRANSACTIONS)
    with (
        warm_runs("spark_versions", corpus_of(options), options) as runs,
        tempfile.TemporaryDirectory(prefix="spark-versions-", dir=options.work_dir) as folder,
        EmbeddedServer(folder) as server,
    ):
        for _ in range(options.rounds):
            began, began_s = processor_seconds_by_role(os.getpid()), time.monotonic()
            key, statistics = runs.run(LINES, server.url, run_options)
            ended, seconds = processor_seconds_by_role(os.getpid()), time.monotonic() - began_s
            if read_counts(server.url, key) != count_first_lines_of_passes(runs.corpus, statistics.tuples):
                print("stored counts differ from the independent count", file=sys.stderr)
                return 1
    used = {role: ended.get(role, 0.0) - began.get(role, 0.0) for role in ROLES}
    shares = ", ".join(f"{role.value} {share:.1f}" for role, share in used.items())
    print(f"{sum(used.values()):.1f} s ({shares}), {seconds:.0f} s long")
    return 0


if __name__ == "__main__":
    sys.exit(main())
