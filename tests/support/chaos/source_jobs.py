"""Small topologies over each source, for drivers to be killed under: they sum what they read by key."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.sources.batches import Batches
from coordinator.sources.data_frame_batches import ColumnRanges, DataFrameBatches
from coordinator.sources.kafka.kafka_topic import KafkaTopic
from coordinator.sources.kafka.opaque_spout import KafkaOpaqueSpout
from coordinator.sources.records.plain_formats import TextLine
from coordinator.sources.redis_streams.redis_streams import RedisStreams
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from examples.kafka_to_redis import topology as page_views
from state import HashState

TOPOLOGY_ID = "sources"
KEYS = 17
PARTITIONS = 4
"""Of a Kafka topic."""


def amount_of(number: int) -> int:
    """What a number counts for."""
    return number * number % 1009


def sums(count: int) -> dict[str, int]:
    """Key -> sum over the numbers below `count`, computed plainly."""
    found: defaultdict[str, int] = defaultdict(int)
    for number in range(count):
        found[str(number % KEYS)] += amount_of(number)
    return dict(found)


class Sum(BaseBatchBolt, ICommitter):
    """Adds up amounts by key."""

    sums = HashState("sums", value=int)

    def prepare(self, conf: Any, context: Any, collector: Any, attempt: Any) -> None:
        self.total: defaultdict[str, int] = defaultdict(int)

    def execute(self, tup: Any) -> None:
        self.total[str(tup["key"])] += tup["amount"]

    def finish_batch(self) -> None:
        self.sums.increment_many(self.total)


def summed(spout: Any) -> Topology:
    """A topology over a source of keys and amounts."""
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "rows", spout, parallelism=2)
    builder.set_committer_bolt("sum", Sum(), parallelism=2).fields_grouping("rows", ["key"])
    return builder.build()


def data_frame(path: str, width: int) -> Topology:
    """Over a JSON file of numbers, by ranges."""
    return summed(
        DataFrameBatches(
            lambda spark: (
                spark.read.schema("id bigint")
                .json(path)
                .selectExpr("id", f"id % {KEYS} AS key", "id * id % 1009 AS amount")
            ),
            ["key", "amount"],
            ColumnRanges("id", int(width)),
        )
    )


def batches(count: int, rows: int) -> Topology:
    """Over batches that a function makes."""
    step = int(rows)

    def make(taken: int) -> Any:
        for start in range(taken * step, int(count), step):
            yield [[number % KEYS, amount_of(number)] for number in range(start, min(start + step, int(count)))]

    return summed(Batches(make, ["key", "amount"]))


def redis_streams(url: str, take: int) -> Topology:
    """Over two streams, which are trimmed as far as they are durable."""
    return summed(
        RedisStreams(["numbers:0", "numbers:1"], fields={"key": int, "amount": int}, take=int(take), url=url, trim=True)
    )


def opaque_views(servers: str, topic: str, messages_per_batch: int) -> Topology:
    """The topology of examples/kafka_to_redis.py, reading with `KafkaOpaqueSpout`."""
    transactional: Topology = page_views(servers, topic)
    spout = KafkaOpaqueSpout(
        KafkaTopic(servers, topic, TextLine("page")), messages_per_partition=messages_per_batch // PARTITIONS
    )
    read = replace(transactional.spout, spec=spout)
    return replace(transactional, components=(read, *transactional.components[1:]))
