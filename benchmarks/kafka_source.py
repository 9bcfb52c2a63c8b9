"""Messages a second from a Kafka topic: counted into Redis by txbatch, next to what the plain client reads.

Run it with ``python -m benchmarks.kafka_source``; it starts a broker and servers of its own. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import redis
from confluent_kafka import Consumer, TopicPartition

from benchmarks.harness import Spread, command_line, describe, in_rounds, median, table, write_json
from coordinated_bolt.components.basic_bolts import BaseBasicBolt, BasicOutputCollector
from coordinated_bolt.streams.tuples import Tuple
from coordinator.engines.spark.java.gateway import stop_context
from coordinator.engines.spark.session import open_context
from coordinator.plain.kafka.partition_manager import PartitionManager
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.run import run
from coordinator.run_plain import run_plain
from coordinator.sources.kafka import KafkaSpout, KafkaTopic, RetryRules
from coordinator.sources.records.plain_formats import TextLine
from coordinator.transactional.options import RunOptions
from examples.kafka_to_redis import topology as page_views
from state.redis_server.embedded import EmbeddedServer
from tests.support.chaos.killed.page_views import write_views
from tests.support.chaos.source_jobs import PARTITIONS
from tests.support.kafka.broker import Broker

TOPIC = "views"
COUNTING_CLIENT = "plain client, counts"
CONSUME_AT_ONCE = 1024
MANAGER_PORTION = 1024


class Site:
    """A broker with messages, and what is measured on it, in messages a second.

    Args:
        options: the command line.
        broker: started.
        context: a Spark context that is warm.
    """

    def __init__(self, options: argparse.Namespace, broker: Broker, context: Any) -> None:
        self._options, self._broker, self._context = options, broker, context
        broker.create_topic(TOPIC, PARTITIONS)
        self._truth = write_views(broker.address, TOPIC, options.messages, random.Random(options.seed))
        self._runs = 0

    def client(self, name: str, take: Callable[[Counter[str], list[bytes]], None]) -> float:
        """The plain client, one process, one consumer of all partitions."""
        consumer = Consumer(
            {"bootstrap.servers": self._broker.address, "group.id": "bench", "enable.auto.commit": False}
        )
        counts: Counter[str] = Counter()
        left, started = self._options.messages, time.perf_counter()
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        while left:
            messages = consumer.consume(CONSUME_AT_ONCE, 1.0)
            values = [message.value() or b"" for message in messages if message.error() is None]
            take(counts, values)
            left -= len(values)
        seconds = time.perf_counter() - started
        consumer.close()
        if counts and counts != self._truth:
            raise RuntimeError(f"{name} counted {counts.total()} messages, not those that were written")
        return float(self._options.messages / seconds)

    def transactional(self) -> float:
        """The shipped example, exactly once into a server of its own; from the first issue to the last commit."""
        topology = page_views(self._broker.address, TOPIC, messages_per_batch=self._options.per_batch)
        with tempfile.TemporaryDirectory(prefix="txbatch-bench-") as folder, EmbeddedServer(folder) as server:
            options = RunOptions(max_spout_pending=self._options.window)
            found = run(topology, redis_url=server.url, spark=self._context, options=options)
            with redis.Redis.from_url(server.url, decode_responses=True, protocol=2) as client:
                found_views: Any = client.hgetall("{page_views}:views")
        counts = {page: int(views) for page, views in found_views.items()}
        if counts != self._truth:
            raise RuntimeError("txbatch counted something else than was written")
        return float(self._options.messages / found.seconds)

    def plain(self) -> float:
        """`KafkaSpout` in waves, with acks and offsets in Redis; from the first wave to the last."""
        self._runs += 1
        with tempfile.TemporaryDirectory(prefix="txbatch-bench-") as folder, EmbeddedServer(folder) as server:
            spout = KafkaSpout(
                KafkaTopic(self._broker.address, TOPIC, TextLine("value")),
                redis=server.url,
                max_uncommitted=self._options.wave,
                retries=RetryRules(limit=0),
            )
            builder = TopologyBuilder(f"plain_kafka_{self._runs}")
            builder.set_spout("messages", spout, 2)
            builder.set_bolt("end", End(), 2).shuffle_grouping("messages")
            builder.set_acker_count(1)
            builder.set_max_spout_pending(self._options.wave)
            bounds = PlainRunOptions(wave_tuples_max=self._options.wave, wave_fill_s=5.0, stop_when_idle=True)
            found = run_plain(builder.build(), spark=self._context, options=bounds)
        if found.acked != self._options.messages:
            raise RuntimeError(f"{found.acked} of {self._options.messages} messages were acked")
        return float(self._options.messages / found.seconds)


class End(BaseBasicBolt):
    """Takes messages."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


def manager_alone(messages: int) -> float:
    """What `PartitionManager` decides for each message: taken, emitted, acked; one in a hundred fails once."""
    manager = PartitionManager(0, 0, RetryRules(0, 1, 0, None), max_uncommitted=10_000)
    started, now_ms = time.perf_counter(), 0
    while manager.completed_to() < messages:
        start = manager.fetch_from(now_ms)
        assert start is not None
        end = min(start + MANAGER_PORTION, messages)
        is_retry = start < manager.emitted_to
        manager.fetched(start, range(start, end), end, now_ms)
        while (offset := manager.take()) is not None:
            for tuple_id in manager.emitting(offset, 1):
                if offset % 100 or is_retry:
                    manager.acked(tuple_id)
                else:
                    manager.failed(tuple_id, now_ms)
        now_ms += 1
    return messages / (time.perf_counter() - started)


def _only_read(counts: Counter[str], values: list[bytes]) -> None:
    """Reads and forgets."""


def _count(counts: Counter[str], values: list[bytes]) -> None:
    counts.update([value.decode() for value in values])


def run_rounds(options: argparse.Namespace) -> list[tuple[str, list[float]]]:
    """Measures all sides in turns."""
    broker = Broker()
    context = open_context("kafka_source", options.master, {})
    try:
        broker.start()
        site = Site(options, broker, context)
        sides: dict[str, Callable[[], float]] = {
            "plain client, reads": lambda: site.client("plain client, reads", _only_read),
            COUNTING_CLIENT: lambda: site.client(COUNTING_CLIENT, _count),
            "txbatch, exactly once": site.transactional,
            "KafkaSpout on Spark, at least once": site.plain,
            "PartitionManager alone": lambda: manager_alone(options.messages),
        }
        site.transactional()  # workers start, Java compiles; not counted
        return in_rounds(
            list(sides),
            lambda side: sides[side](),
            options.rounds,
            shown=lambda side, rate: f"{side}: {rate:,.0f} messages/s",
        )
    finally:
        stop_context(context)
        broker.stop()


def report(measured: Sequence[tuple[str, Sequence[float]]]) -> str:
    """One row a side; the ratio is that of the medians."""
    counted = median(dict(measured)[COUNTING_CLIENT])
    rows = [[side, *Spread.over(rates).cells(), f"{median(rates) / counted:.2f}"] for side, rates in measured]
    return table(("4 partitions", "messages/s", "spread", "of the client that counts"), rows)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command_line("kafka_source", __doc__, rounds=3, has_quick=True)
    add = parser.add_argument
    add("--messages", type=int, default=1_000_000, help="messages in the topic (default %(default)s)")
    add("--per-batch", type=int, default=10_000, help="messages of a transaction (default %(default)s)")
    add("--window", type=int, default=32, help="transactions in flight (default %(default)s)")
    add("--wave", type=int, default=50_000, help="tuples of a plain wave (default %(default)s)")
    add("--master", default="local[2]", help="Spark master (default %(default)s)")
    add("--seed", type=int, default=1, help="of the messages (default %(default)s)")
    options = parser.parse_args(arguments)
    if options.quick:
        options.messages, options.per_batch, options.wave, options.rounds = 20_000, 2_000, 10_000, 1
    return options


def main() -> int:
    """Measures, prints and returns 0."""
    options = parse_arguments()
    print(describe(), flush=True)
    measured = run_rounds(options)
    print(f"\n{report(measured)}")
    write_json(options.json, describe(), measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
