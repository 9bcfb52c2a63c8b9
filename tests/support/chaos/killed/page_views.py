"""Counts messages of a real Kafka topic, whose broker is killed too and started again on the same log."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import redis
from confluent_kafka import Producer

from tests.support.chaos.killed.case import Case, again_and_again, differences
from tests.support.chaos.source_jobs import PARTITIONS
from tests.support.kafka.broker import Broker

TOPIC = "page_views"
PAGES = 5000
AWAY_S = 1.0
"""How long the broker stays away after a kill, in addition to what its start takes."""
POLL_EVERY = 1000
FLUSH_S = 120.0
MESSAGES_PER_BATCH = 5000


class PageViews(Case):
    """Messages of one topic.

    Args:
        broker: a running one.
        broker_kills: how often it is killed while transactions commit.

    Attributes:
        broker_killed: committed transactions at each kill of the broker.
    """

    size_of, default_size = "messages", 1_000_000
    factory = "examples.kafka_to_redis:topology"

    def __init__(
        self, folder: Path, size: int, seed: int, timeout_s: float, *, broker: Broker, broker_kills: int
    ) -> None:
        super().__init__(folder, size, seed, timeout_s)
        broker.create_topic(TOPIC, PARTITIONS)
        self.truth = write_views(broker.address, TOPIC, size, self.draw)
        given = {"servers": broker.address, "topic": TOPIC, "messages_per_batch": MESSAGES_PER_BATCH}
        self.site = self.site_of("page_views", self.factory, given)
        self.total = -(-size // MESSAGES_PER_BATCH)
        self._broker = broker
        self._kill_at = sorted(self.draw.randrange(1, max(2, self.total * 3 // 4)) for _ in range(broker_kills))
        self.broker_killed: list[int] = []
        self._is_away = False

    def meanwhile(self) -> AbstractContextManager[object]:
        return again_and_again(self._strike)

    def wrong(self, client: redis.Redis) -> Iterator[str]:
        yield from differences(self.state(client, "views"), self.truth)
        self.facts["broker killed"] = f"at {self.broker_killed} committed transactions"

    def _strike(self) -> float:
        if self._is_away:
            self._broker.start()
            self._is_away = False
        committed = self.site.committed() or 0
        if not self._kill_at or committed < self._kill_at[0]:
            return 0.02
        self._kill_at = [each for each in self._kill_at if each > committed]
        self._broker.kill()
        self._is_away = True
        self.broker_killed.append(committed)
        return AWAY_S


class OpaqueViews(PageViews):
    """The same, read by `KafkaOpaqueSpout`."""

    factory = "tests.support.chaos.source_jobs:opaque_views"


def write_views(address: str, topic: str, messages: int, draw: random.Random) -> Counter[str]:
    """Writes messages, spread over the partitions, and counts them independently of txbatch."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 20,
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": 262_144,
        }
    )
    pages = [f"/page/{number}" for number in range(PAGES)]
    drawn = [pages[int(PAGES * draw.random() ** 3)] for _ in range(messages)]
    for number, page in enumerate(drawn):
        while True:
            try:
                producer.produce(topic, page, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    if producer.flush(FLUSH_S):
        raise AssertionError("the broker did not take the messages")
    return Counter(drawn)
