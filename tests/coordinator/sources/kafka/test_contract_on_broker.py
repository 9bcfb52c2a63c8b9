"""A Kafka topic keeps what every transactional source promises."""

from __future__ import annotations

from itertools import count

import pytest
from confluent_kafka import TopicPartition

from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.worker_readers import worker_readers
from tests.coordinator.sources.contract import SourceContract, SourceWorld
from tests.support.kafka.messages import produce

pytestmark = pytest.mark.kafka


class KafkaWorld(SourceWorld):
    """A topic; numbers are spread over its partitions.

    Args:
        broker: where.
        make_topic: makes topics.
        partitions: how many.
    """

    lost = r"are not in its log any more"

    def __init__(self, broker, make_topic, partitions):
        super().__init__()
        self._broker, self._make_topic, self._partitions = broker, make_topic, partitions
        self._topic = make_topic(partitions)
        self._numbers = count()

    def add(self, count):
        values = [str(next(self._numbers)) for _ in range(count)]
        for partition in range(self._partitions):
            produce(
                self._broker.address,
                self._topic,
                [v.encode() for v in values[partition :: self._partitions]],
                partition,
            )
        self.rows += [[value] for value in values]

    def spout(self):
        return KafkaTransactionalSpout(
            KafkaTopic(self._broker.address, self._topic, TextLine("value")), messages_per_batch=4
        )

    def other_spout(self):
        topic = self._make_topic()
        produce(self._broker.address, topic, [b"another"])
        return KafkaTransactionalSpout(KafkaTopic(self._broker.address, topic, TextLine("value")))

    def take_away(self):
        places = [TopicPartition(self._topic, partition, 3) for partition in range(self._partitions)]
        self._broker.admin_do(lambda admin: admin.delete_records(places)[places[0]])
        worker_readers().close()  # a new run has nothing read ahead


class WideKafkaWorld(KafkaWorld):
    is_ordered = False


class TestOnePartition(SourceContract):
    @pytest.fixture
    def world(self, broker, make_topic):
        return KafkaWorld(broker, make_topic, 1)


@pytest.mark.nightly
class TestSeveralPartitions(SourceContract):
    @pytest.fixture
    def world(self, broker, make_topic):
        return WideKafkaWorld(broker, make_topic, 3)
