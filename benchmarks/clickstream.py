"""Two million events in eight files, as compressed JSON Lines and as Parquet: txbatch and a plain PySpark job.

    python -m benchmarks.clickstream --events 2000000

Both compute views and revenue of each page and the set of visitors, and both answers have to equal what was counted
while the events were made. The plain job reads everything, aggregates in the JVM and writes once with redis-py: it is
not exactly once, and after a crash it starts over. Each measurement is a fresh process on a fresh server; times are
of the whole process, start-up included.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import redis

from state.redis_embedded import EmbeddedServer, socket_path_of

TOPOLOGY_ID = "clickstream"
FILES = 8
PAGES = 500
USERS = 100_000
ROW_GROUP_ROWS = 25_000
REPOSITORY = Path(__file__).resolve().parents[1]
LABELS = {"json": "JSON Lines, gzip", "parquet": "Parquet"}


@dataclass
class Truth:
    """What was counted while the events were made."""

    views: Counter[str] = field(default_factory=Counter)
    cents: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)

    def take(self, events: list[tuple[str, str, int | None]]) -> None:
        for user, page, cents in events:
            self.views[page] += 1
            self.cents[page] += cents or 0
            self.users.add(user)


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        side: ``txbatch`` or ``plain``.
        form: of the files.
        seconds: of the whole process.
        is_exact: whether its answers are those counted independently.
        load: average of the last minute at its end.
    """

    side: str
    form: str
    seconds: float
    is_exact: bool
    load: float


def make_events(count: int, seed: int) -> Iterator[list[tuple[str, str, int | None]]]:
    """The events of each file: visitor, page, and what was paid, in cents."""
    draw = random.Random(seed)
    for number in range(FILES):
        size = count * (number + 1) // FILES - count * number // FILES
        yield [
            (
                f"user-{draw.randrange(USERS)}",
                f"/page/{int(PAGES * draw.random() ** 2)}",
                draw.randrange(100, 20_000) if draw.random() < 0.1 else None,
            )
            for _ in range(size)
        ]


def write_events(folder: Path, count: int, seed: int) -> Truth:
    """Writes every file in both forms."""
    truth = Truth()
    for number, events in enumerate(make_events(count, seed)):
        truth.take(events)
        lines = (
            f'{{"ts":{1_700_000_000 + index},"user":"{user}","page":"{page}","price":{_price(cents)},'
            f'"agent":"Mozilla/5.0 (X11; Linux x86_64)","status":200}}\n'
            for index, (user, page, cents) in enumerate(events)
        )
        with gzip.open(folder / f"{number}.json.gz", "wt", compresslevel=6, encoding="utf-8") as file:
            file.writelines(lines)
        users, pages, cents = zip(*events, strict=True) if events else ((), (), ())
        prices = pa.array(cents, pa.int64()).cast(pa.decimal128(21, 0))
        hundred = pa.scalar(100, pa.decimal128(3, 0))
        columns = {"user": users, "page": pages, "price": pa.compute.divide(prices.cast(pa.decimal128(25, 2)), hundred)}
        table = pa.table(columns)
        place = table.schema.get_field_index("price")
        table = table.set_column(place, "price", table.column("price").cast(pa.decimal128(12, 2)))
        pa.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=ROW_GROUP_ROWS)
    return truth


def _price(cents: int | None) -> str:
    return "null" if cents is None else f"{cents // 100}.{cents % 100:02}"


def pattern(folder: Path, form: str) -> str:
    """The files of one form."""
    return str(folder / ("*.json.gz" if form == "json" else "*.parquet"))


def is_exact(data_dir: Path, truth: Truth) -> bool:
    """Whether a server's answers are the true ones."""
    with (
        EmbeddedServer(data_dir),
        redis.Redis(unix_socket_path=str(socket_path_of(data_dir)), decode_responses=True) as client,
    ):
        views: Any = client.hgetall(f"{{{TOPOLOGY_ID}}}:views")
        cents: Any = client.hgetall(f"{{{TOPOLOGY_ID}}}:revenue_cents")
        users: Any = client.smembers(f"{{{TOPOLOGY_ID}}}:users")
    found = Truth(Counter(_integers(views)), Counter(_integers(cents)), users)
    return found == truth


def _integers(found: dict[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in found.items()}


def run_txbatch(folder: Path, data_dir: Path, form: str, rows: int) -> list[str]:
    """The command of the txbatch side."""
    given = {"input": pattern(folder, form), "format": form, "rows": rows}
    parameters = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    return ["-m", "coordinator.cli", "run", "examples.clickstream:topology", *parameters, "--data-dir", str(data_dir)]


def run_plain(folder: Path, data_dir: Path, form: str, rows: int) -> list[str]:
    """The command of the control."""
    return ["-m", "benchmarks.clickstream", "--plain", form, "--folder", str(folder), "--data-dir", str(data_dir)]


def plain_job(folder: Path, data_dir: Path, form: str) -> None:
    """The control: a job as most people would write it."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    schema = "user string, page string, price decimal(12, 2)"
    files = pattern(folder, form)
    events = (spark.read.schema(schema).json(files) if form == "json" else spark.read.parquet(files)).cache()
    pages = events.groupBy("page").agg(f.count("*").alias("views"), f.sum("price").alias("revenue")).collect()
    users = events.select("user").distinct().collect()
    with (
        EmbeddedServer(data_dir),
        redis.Redis(unix_socket_path=str(socket_path_of(data_dir))) as client,
        client.pipeline(transaction=True) as pipeline,
    ):
        pipeline.hset(f"{{{TOPOLOGY_ID}}}:views", mapping={row.page: row.views for row in pages})
        cents = {row.page: int((row.revenue or 0) * 100) for row in pages}
        pipeline.hset(f"{{{TOPOLOGY_ID}}}:revenue_cents", mapping=cents)
        for start in range(0, len(users), 1000):
            pipeline.sadd(f"{{{TOPOLOGY_ID}}}:users", *(row.user for row in users[start : start + 1000]))
        pipeline.execute()
    spark.stop()


SIDES = {"txbatch": run_txbatch, "plain": run_plain}


def measure(folder: Path, side: str, form: str, rows: int, truth: Truth) -> Measured:
    """Runs one side in a fresh process on a fresh server, and looks whether its answers are right."""
    with tempfile.TemporaryDirectory(prefix="txbatch-clickstream-") as temporary:
        data_dir = Path(temporary) / "data"
        command = [sys.executable, *SIDES[side](folder, data_dir, form, rows)]
        started_s = time.monotonic()
        ended = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - started_s
        if ended.returncode:
            raise SystemExit(f"{side} ended with {ended.returncode}:\n{ended.stderr}")
        return Measured(side, form, round(seconds, 1), is_exact(data_dir, truth), round(os.getloadavg()[0], 1))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, default=10_000, help="events of a transaction")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for the events; the default is a temporary one")
    parser.add_argument("--json", type=Path, help="writes the figures there")
    parser.add_argument("--plain", choices=tuple(LABELS), help=argparse.SUPPRESS)
    parser.add_argument("--data-dir", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        plain_job(options.folder, options.data_dir, options.plain)
        return 0
    with tempfile.TemporaryDirectory(prefix="txbatch-events-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        truth = write_events(folder, options.events, options.seed)
        print(f"{options.events:,} events in {FILES} files, {len(truth.users):,} visitors, {len(truth.views)} pages")
        measured = []
        for _ in range(options.repeat):
            for form, label in LABELS.items():
                for side in SIDES:
                    found = measure(folder, side, form, options.rows, truth)
                    rate = options.events / found.seconds
                    verdict = "exact" if found.is_exact else "WRONG"
                    print(
                        f"{label:18} {side:8} {found.seconds:6.1f} s {rate:9,.0f} events/s {verdict}, load {found.load}"
                    )
                    measured.append(found)
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in measured], indent=1), encoding="utf-8")
    return 0 if all(each.is_exact for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
