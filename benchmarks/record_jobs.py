"""Jobs over records: ``python -m benchmarks.record_jobs SIDE SOURCE ADDRESS`` runs one to its end.

The address is that of a server, and the source a pattern of files, or a broker and a topic. Each side leaves what
`expected` returns in the hash ``{records}:sums``; `orders` leaves several states.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TextFiles, TransactionalTopologyBuilder, run, stream
from coordinator.sources import CsvFiles, Inputs, JsonFields, JsonLines, ParquetFiles
from state import HashState, HyperLogLogState, SetState, SortedSetState, StreamState

FIELDS = {"id": int, "day": str, "amount": int}
PRICE, DAY_FIELDS = Decimal("0.01"), {"id": int, "day": date, "customer": str, "price": Decimal}
LARGE = Decimal("199.50")
FIRST_DAY = date(2026, 11, 1)
DAYS = 28


def make_rows(count: int) -> list[dict[str, Any]]:
    """Returns rows of five columns; the same for the same count."""
    draw = random.Random(count)
    days = [str(FIRST_DAY + timedelta(number)) for number in range(DAYS)]
    return [
        {
            "id": number,
            "day": draw.choice(days),
            "country": draw.choice(("de", "fr", "it", "us")),
            "amount": draw.randrange(1, 20_000),
            "note": "n" * draw.randrange(3, 20),
        }
        for number in range(count)
    ]


def expected(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Returns the amounts of each day."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["day"]] += row["amount"]
    return dict(sums)


def write_files(folder: Path, count: int) -> tuple[dict[str, int], dict[str, int]]:
    """Writes the rows in each form; returns the amounts of each day, of the rows and of the orders in cents."""
    folder.mkdir(parents=True)
    rows = make_rows(count)
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    lines = [",".join(map(str, row.values())) for row in rows]
    (folder / "rows.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet", row_group_size=100_000)
    return expected(rows), _write_orders(folder / "orders", count)


def _write_orders(folder: Path, count: int) -> dict[str, int]:
    """Writes nine orders in CSV for each return in JSON Lines; the id of one in fifty is there twice."""
    revenue, seen = Counter[str](), set[int]()
    folder.mkdir()
    draw, returns = random.Random(count), count // 10
    with (folder / "orders.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(DAY_FIELDS)
        for number in range(count - returns):
            order = _order(draw, number - (number % 50 == 49))
            writer.writerow(order)
            if order[0] not in seen:
                revenue[str(order[1])] += int(order[3] * 100)
            seen.add(order[0])
    with (folder / "returns.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(returns):
            found = dict(zip(DAY_FIELDS, _order(draw, number), strict=True))
            lines.write(json.dumps(found, default=str) + "\n")
    return dict(revenue)


def _order(draw: random.Random, number: int) -> list[Any]:
    day = FIRST_DAY + timedelta(draw.randrange(DAYS))
    return [number, day, f"c{draw.randrange(2000)}", PRICE * draw.randrange(1, 20_000)]


def summed(source: Any) -> Any:
    """The job of every format, in the short form."""
    return stream(source).sum_by("day", "amount", into=HashState("sums")).topology("records")


class AddUp(BaseBatchBolt):
    """The first of its two classes: sums of a batch, by columns."""

    output_fields = ("day", "amount")

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.collector, self.sums = collector, Counter[str]()

    def execute_batch(self, batch: Any) -> None:
        for day, amount in zip(batch.column("day"), batch.column("amount"), strict=True):
            self.sums[day] += amount

    def finish_batch(self) -> None:
        self.collector.emit_all(self.sums.items())


class StoreSums(BaseBatchBolt, ICommitter):
    """The second: sums of a transaction into the hash."""

    sums = HashState[int]("sums", value=int)

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.found = Counter[str]()

    def execute(self, tup: Any) -> None:
        self.found[tup["day"]] += tup["amount"]

    def finish_batch(self) -> None:
        self.sums.increment_many(self.found)


def summed_by_classes(source: Any) -> Any:
    """The same job as classes."""
    builder = TransactionalTopologyBuilder("records", "input", source)
    builder.set_bolt("add", AddUp()).shuffle_grouping("input")
    builder.set_bolt("store", StoreSums()).fields_grouping("add", ["day"])
    return builder.build()


def by_text(pattern: str) -> Any:
    """The control: lines split by the user's own function."""
    rows = stream(TextFiles(f"{pattern}/rows.txt", 1000)).map(_split, to=("day", "amount"))
    return rows.sum_by("day", "amount", into=HashState("sums")).topology("records")


def _split(line: str) -> tuple[str, int]:
    _, day, _, amount, _ = line.split(",")
    return day, int(amount)


def from_kafka(source: str) -> Any:
    """JSON values of a topic, ``broker/topic``."""
    from coordinator.sources.kafka import KafkaTopic, KafkaTransactionalSpout

    address, _, topic = source.partition("/")
    return KafkaTransactionalSpout(KafkaTopic(address, topic, JsonFields(FIELDS)), messages_per_batch=10_000)


def orders(folder: str) -> Any:
    """Orders less returns by day, each counted once; buyers, best customers, and an alert for each large order."""
    source = Inputs(
        orders=CsvFiles(f"{folder}/orders/orders.csv", DAY_FIELDS, 1000),
        returns=JsonLines(f"{folder}/orders/returns.jsonl", DAY_FIELDS, 1000),
    )
    both = stream(source)
    new = both.output("orders").distinct_by("id", into=SetState("seen", int))
    new.key_by(str, to="on", of="day").sum_by("on", "price", into=HashState("revenue", value=Decimal, scale=2))
    new.distinct_by("customer", into=HyperLogLogState("buyers").per("day", date))
    cents = new.map(lambda price: int(price * 100), to="cents", of="price")
    cents.sum_by("customer", "cents", into=SortedSetState("best"))
    new.filter(lambda price: price > LARGE, of="price").commit(Alert())
    returns = both.output("returns").key_by(str, to="on", of="day")
    returns.sum_by("on", "price", into=HashState("returned", value=Decimal, scale=2))
    return both.topology("records")


class Alert(BaseBatchBolt, ICommitter):
    """Appends each row to a stream."""

    alerts = StreamState("alerts")

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.found: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.found.append({"id": str(tup["id"]), "price": str(tup["price"])})

    def finish_batch(self) -> None:
        for entry in self.found:
            self.alerts.append(entry)


OURS: Mapping[str, Callable[[str], Any]] = {
    "text": by_text,
    "csv": lambda folder: summed(CsvFiles(f"{folder}/rows.csv", FIELDS, 1000)),
    "csv classes": lambda folder: summed_by_classes(CsvFiles(f"{folder}/rows.csv", FIELDS, 1000)),
    "json": lambda folder: summed(JsonLines(f"{folder}/rows.jsonl", FIELDS, 1000)),
    "parquet": lambda folder: summed(ParquetFiles(f"{folder}/rows.parquet", ["day", "amount"], 10_000)),
    "kafka": lambda source: summed(from_kafka(source)),
    "orders": orders,
}


def main() -> None:
    """Runs one side, without Spark unless its name ends with it."""
    side, source, address = sys.argv[1:]
    name, _, engine = side.partition(" on ")
    more: dict[str, Any] = {"master": "local[2]"} if engine else {"engine": "local"}
    run(OURS[name](source), redis_url=address, **more)


if __name__ == "__main__":
    main()
