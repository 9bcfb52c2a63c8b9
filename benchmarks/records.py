"""Rows a second that one core takes from CSV, JSON Lines, Parquet, text and Kafka, next to Bytewax and Pathway.

Run it::

    python -m benchmarks.records
    python -m benchmarks.records --side csv 'csv on spark' 'bytewax csv' --rows 100000 --rounds 5

Each side adds up amounts by day, in a process of its own, into the same server. It does so twice a round, with a
quarter of the rows and with all: the difference, which knows no start-up, is what a row costs in processor time, that
of the process and all it has started. Server and broker are not counted. Every answer is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

from benchmarks.harness import Spread, command_line, describe, in_rounds, median, table, write_json
from benchmarks.process_tree import processor_seconds
from benchmarks.record_contenders import KEY, OTHERS
from benchmarks.record_jobs import OURS, make_rows, write_files
from state import EmbeddedServer

SPARK = " on spark"
SIDES = [*OURS, *(f"{name}{SPARK}" for name in ("csv", "json")), *OTHERS]
CONTROL = "text"
REVENUE = "{records}:revenue"
SAMPLE_S = 0.05
TOPIC, PARTITIONS = "records", 2


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = command_line("records", __doc__, rounds=3, option="--rounds")
    parser.add_argument("--rows", type=int, default=400_000, help="(default %(default)s)")
    installed = [side for side in SIDES if find_spec(side.split()[0]) or side not in OTHERS]
    parser.add_argument("--side", nargs="+", choices=SIDES, default=[side for side in installed if side != "kafka"])
    return parser.parse_args(arguments)


def measured(
    side: str, source: str, address: str, answers: tuple[dict[str, int], dict[str, int]]
) -> tuple[float, float]:
    """Runs one side to its end; returns seconds and processor seconds of it and all that it has started.

    Raises:
        SystemExit: it failed, or its answer is wrong.
    """
    with redis.Redis.from_url(address, decode_responses=True) as client:
        client.flushall()
        started_s, used_s = time.monotonic(), 0.0
        module = f"benchmarks.{'record_contenders' if side in OTHERS else 'record_jobs'}"
        job = subprocess.Popen([sys.executable, "-m", module, side, source, address])
        while not (ended := os.wait4(job.pid, os.WNOHANG))[0]:
            used_s = max(used_s, processor_seconds(job.pid))
            time.sleep(SAMPLE_S)
        seconds, usage = time.monotonic() - started_s, ended[2]
        job.returncode = os.waitstatus_to_exitcode(ended[1])
        if job.returncode:
            raise SystemExit(f"{side} ended with {job.returncode}")
        stored: Any = client.hgetall(REVENUE if side == "orders" else KEY)
    found = {day: int(amount) for day, amount in stored.items()}
    if found != answers[side == "orders"]:
        raise SystemExit(f"{side} has another answer: {found}")
    return seconds, max(used_s, usage.ru_utime + usage.ru_stime)


@contextmanager
def topics(counts: Sequence[int]) -> Iterator[dict[int, str]]:
    """Starts a broker and yields count -> the source of a topic with that many rows."""
    from confluent_kafka import Producer

    from tests.support.kafka.broker import Broker

    broker = Broker()
    try:
        broker.start()
        for count in counts:
            broker.create_topic(f"{TOPIC}-{count}", PARTITIONS)
            producer = Producer({"bootstrap.servers": broker.address})
            for number, row in enumerate(make_rows(count)):
                producer.produce(f"{TOPIC}-{count}", json.dumps(row), partition=number % PARTITIONS)
                if number % 10_000 == 0:
                    producer.flush()
            producer.flush()
        yield {count: f"{broker.address}/{TOPIC}-{count}" for count in counts}
    finally:
        broker.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the sides and prints one row for each."""
    options = parse_arguments(arguments)
    counts = (options.rows // 4, options.rows)
    print(describe())
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="txbatch-records-")))
        answers = {count: write_files(folder / str(count), count) for count in counts}
        server = resources.enter_context(EmbeddedServer(folder / "server"))
        files = {count: str(folder / str(count)) for count in counts}
        in_kafka = resources.enter_context(topics(counts)) if "kafka" in options.side else {}

        def both(side: str) -> list[tuple[float, float]]:
            sources = in_kafka if side == "kafka" else files
            return [measured(side, sources[count], server.url, answers[count]) for count in counts]

        found = in_rounds(
            options.side, both, options.rounds, shown=lambda side, pair: f"{side}: {pair[1][1]:.2f} s of processor time"
        )
    write_json(options.json, describe(), found)
    more = counts[1] - counts[0]
    costs = {side: [(large[1] - small[1]) / more * 1e6 for small, large in pairs] for side, pairs in found}
    control = median(costs[CONTROL]) if CONTROL in costs else 0.0
    rows = []
    for side, pairs in found:
        spread = Spread.over(costs[side])
        start_s = median([small[1] for small, _ in pairs]) - spread.median * counts[0] / 1e6
        ratio = f"{spread.median / control:.2f}" if control else ""
        rows.append([side, f"{1e6 / spread.median:,.0f}", *spread.cells(".2f"), ratio, f"{start_s:.2f}"])
    print(table(("side", "rows a second", "µs a row", "spread", "x text", "start, s"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
