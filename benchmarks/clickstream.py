"""Two million events of a clickstream: the shipped example, and a plain PySpark job with the same answers.

    python -m benchmarks.clickstream --events 2000000 --repeat 3

Both compute visits and visitors of each day and the views of its pages, and both answers have to equal those of a plain
loop over the events. The plain job reads everything, computes in the JVM with window functions and writes once with
redis-py: it is not exactly once, and after a crash it starts over. Each is measured as a whole; see `whole_job`.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from argparse import SUPPRESS
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import redis

from benchmarks.harness import command_line
from benchmarks.whole_job import Side, compare
from examples.clickstream import DAY_S, EVENT, PAUSE_S, date_of, make_data
from state.redis_server.embedded import EmbeddedServer, socket_path_of

TOPOLOGY_ID = "clickstream"
KEYS = {name: f"{{{TOPOLOGY_ID}}}:{name}" for name in ("visits", "visitors", "views")}
Answer = dict[str, dict[str, Any]]
"""By day: the number of visits, the number of visitors, and the views of each page."""


def expected(folder: Path) -> Answer:
    """What a plain loop over all events finds; the events are in the order of time."""
    visits: Counter[str] = Counter()
    visitors: Counter[str] = Counter()
    views: defaultdict[str, Counter[str]] = defaultdict(Counter)
    last_seen: dict[str, int] = {}
    for path in sorted(folder.glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                ts, user, page = (json.loads(line)[name] for name in EVENT)
                last, last_seen[user] = last_seen.get(user), ts
                day = date_of(ts // DAY_S)
                views[day][page] += 1
                visits[day] += last is None or ts - last > PAUSE_S
                visitors[day] += last is None or ts // DAY_S != last // DAY_S
    return {
        "visits": dict(visits),
        "visitors": dict(visitors),
        "views": {day: dict(pages) for day, pages in views.items()},
    }


def stored(data_dir: Path) -> Answer:
    """What a server holds."""
    with (
        EmbeddedServer(data_dir),
        redis.Redis(unix_socket_path=str(socket_path_of(data_dir)), decode_responses=True) as client,
    ):
        visits: Any = client.hgetall(KEYS["visits"])
        visitors: Any = client.hgetall(KEYS["visitors"])
        ranked: Any = {day: client.zrange(f"{KEYS['views']}:{day}", 0, -1, withscores=True) for day in visits}
    return {
        "visits": {day: int(count) for day, count in visits.items()},
        "visitors": {day: int(count) for day, count in visitors.items()},
        "views": {day: {page: int(views) for page, views in pages} for day, pages in ranked.items()},
    }


def txbatch_command(folder: Path, data_dir: Path) -> list[str]:
    """The command of the txbatch side."""
    arguments = ["run", "examples.clickstream:topology", "-p", f"input={folder}/*.json.gz", "--master", "local[2]"]
    return ["-m", "coordinator.operating.cli", *arguments, "--data-dir", str(data_dir)]


def plain_command(folder: Path, data_dir: Path) -> list[str]:
    """The command of the control."""
    return ["-m", "benchmarks.clickstream", "--plain", "--folder", str(folder), "--data-dir", str(data_dir)]


SIDES = {"txbatch": txbatch_command, "plain": plain_command}


def plain_job(folder: Path, data_dir: Path) -> None:
    """The control: a job as most people would write it."""
    from pyspark.sql import SparkSession, Window
    from pyspark.sql import functions as f

    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    events = spark.read.schema("ts long, user string, page string").json(f"{folder}/*.json.gz").cache()
    last = f.lag("ts").over(Window.partitionBy("user").orderBy("ts"))
    day = f.floor(f.col("ts") / DAY_S).alias("day")
    days = (
        events.withColumn("last", last)
        .groupBy(day)
        .agg(
            f.count_if(f.col("last").isNull() | (f.col("ts") - f.col("last") > PAUSE_S)).alias("visits"),
            f.countDistinct("user").alias("visitors"),
        )
        .collect()
    )
    pages = events.groupBy(day, "page").count().collect()
    with (
        EmbeddedServer(data_dir),
        redis.Redis(unix_socket_path=str(socket_path_of(data_dir))) as client,
        client.pipeline(transaction=True) as pipeline,
    ):
        pipeline.hset(KEYS["visits"], mapping={date_of(row.day): row.visits for row in days})
        pipeline.hset(KEYS["visitors"], mapping={date_of(row.day): row.visitors for row in days})
        for row in pages:
            pipeline.zadd(f"{KEYS['views']}:{date_of(row.day)}", {row.page: row["count"]})
        pipeline.execute()
    spark.stop()


def main() -> int:
    """The command."""
    parser = command_line("clickstream", __doc__, rounds=1)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="for the events; the default is a temporary one")
    parser.add_argument("--plain", action="store_true", help=SUPPRESS)
    parser.add_argument("--data-dir", type=Path, help=SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        plain_job(options.folder, options.data_dir)
        return 0
    with tempfile.TemporaryDirectory(prefix="txbatch-events-") as temporary:
        folder = options.folder or Path(temporary)
        make_data(folder, options.events, seed=options.seed)
        answer = expected(folder)
        events = sum(sum(pages.values()) for pages in answer["views"].values())
        print(f"{events:,} events of {len(answer['visits'])} days")
        sides = {
            name: Side(partial(command, folder), lambda data_dir: stored(data_dir) == answer)
            for name, command in SIDES.items()
        }
        return compare(sides, rounds=options.rounds, results=options.json)


if __name__ == "__main__":
    sys.exit(main())
