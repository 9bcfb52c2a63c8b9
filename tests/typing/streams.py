"""What type checkers make of streams whose rows are records; see handles.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

from coordinator import (
    CsvFiles,
    FixedBatchesSpout,
    HashState,
    Inputs,
    JsonLines,
    ParquetFiles,
    RedisStreams,
    Stream,
    TextFiles,
    TransactionalRun,
    ValueState,
    stream,
)


class Order(NamedTuple):
    who: str
    cents: int
    note: str | None


@dataclass
class Visit:
    who: str
    seconds: float


def visits(order: Order) -> Iterator[Visit]:
    yield Visit(order.who, order.cents / 10)


orders = stream(JsonLines("*.jsonl", Order))
assert_type(orders, Stream[Order])
assert_type(stream(CsvFiles("*.csv", Order)), Stream[Order])
assert_type(stream(ParquetFiles("*.parquet", Order)), Stream[Order])
assert_type(stream(RedisStreams("orders", fields=Order)), Stream[Order])
assert_type(stream(FixedBatchesSpout([[Order("ann", 3, None)]], Order)), Stream[Order])
assert_type(orders.filter(lambda order: order.cents > 100), Stream[Order])
assert_type(orders.dead_letter_if(lambda order: order.cents < 0, "negative"), Stream[Order])
made = orders.map(lambda order: Visit(order.who, 1.5), to=Visit)
assert_type(made, Stream[Visit])
assert_type(orders.flat_map(visits, to=Visit), Stream[Visit])
assert_type(orders.merge(orders.filter(lambda order: order.cents > 1)), Stream[Order])
assert_type(orders.key_by(lambda order: order.who[:1]), Stream[Order])
assert_type(orders.map(str.upper, of="note"), Stream[Any])
spent = HashState("spent")
orders.sum_by("who", "cents", into=spent).count_by("who", into=HashState("orders"))

lines = stream(TextFiles("*.txt"))
assert_type(lines, Stream)
assert_type(stream(JsonLines("*.jsonl", {"who": str, "cents": int})), Stream)
assert_type(stream(Inputs(orders=JsonLines("*.jsonl", Order))), Stream)
lines.flat_map(str.split, to="word").filter(lambda word: word != "the").count_by("word", into=HashState("counts"))
stream(CsvFiles("*.csv", ["a", "b"])).filter(lambda a, b: a > b).map(lambda a, b: (b, a), to=["c", "d"])


def untyped(given: Stream) -> Stream:
    return given.filter(lambda a, b: a > b)


untyped(lines)


def stored(run: TransactionalRun) -> int | None:
    assert_type(run.state(spent), dict[Any, int])
    assert_type(run.state(ValueState[str]("last")), str | None)
    assert_type(run.state("spent"), Any)
    return run.state(spent).get("ann")


orders.filter(lambda order: order.cent > 100)  # type: ignore[attr-defined]
orders.filter(lambda who, cents, note: cents > 100)  # type: ignore[arg-type, misc]
orders.map(lambda order: Visit(order.who, "long"), to=Visit)  # type: ignore[arg-type]
orders.sum_by("who", "cents", into=HashState("names", str))  # type: ignore[type-var]
orders.merge(made)  # type: ignore[arg-type]
untyped(orders)  # type: ignore[arg-type]
