"""What the plain spout works with: brokers, Redis and a clock; tests script all three."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from coordinator.sources.kafka.client_settings import FromEnvironment, FromFile, read_secret
from coordinator.sources.kafka.kafka_input import KafkaInput
from coordinator.sources.kafka.plain.offset_record import OffsetRecords
from coordinator.sources.kafka.record_emission import KafkaMessage
from coordinator.sources.kafka.topic import Topic
from state.redis_topology.offset_records import RedisOffsetRecords


class Fetches(Protocol):
    """The reader of one partition, see `PartitionReader`."""

    def messages_from(self, first: int, limit: int, *, wait_s: float) -> Sequence[KafkaMessage]:
        """Some messages from an offset on; none if the log ends there or nothing arrives in time.

        Raises:
            OutOfRangeError: the offset is not in the log.
        """

    def position(self) -> int:
        """Where the next message would be."""

    def needs_no_wait(self, offset: int) -> bool:
        """See `PartitionReader.needs_no_wait`."""


class Drivers:
    """The real ones. A spec: shipped with the spout, connects to nothing by itself."""

    def topic(self, source: KafkaInput) -> Topic:
        """Asks brokers of the topic."""
        return source.broker_topic()

    def reader(self, source: KafkaInput, topic_id: str, partition: int) -> Fetches:
        """Reads a partition."""
        return source.reader(topic_id, partition)

    def records(self, redis: str | FromEnvironment | FromFile, topology_id: str) -> OffsetRecords:
        """Keeps offsets.

        Raises:
            SourceError: the address is not where it is said to be.
            TopologyError: the address is malformed.
        """
        return RedisOffsetRecords(redis if isinstance(redis, str) else read_secret(redis), topology_id)

    def now_ms(self) -> int:
        """Milliseconds of a clock that does not go back."""
        return time.monotonic_ns() // 1_000_000
