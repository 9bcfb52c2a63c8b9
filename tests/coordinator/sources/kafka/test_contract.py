"""Kafka spouts keep the contract of all sources, on brokers in memory and on a real one."""

from __future__ import annotations

from itertools import count

import pytest
from confluent_kafka import TopicPartition

from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaTopic, KafkaTransactionalSpout
from coordinator.sources.kafka.worker_readers import worker_readers
from tests.coordinator.sources.contract import RestoreContract, SourceContract, SourceWorld
from tests.support.kafka.lying_brokers import SERVERS, TOPIC, Log, LyingBrokers
from tests.support.kafka.messages import produce


class KafkaWorld(SourceWorld):
    """Two partitions on brokers in memory, which do not lie here."""

    lost = r"are not in its log any more"
    is_ordered = False

    def __init__(self, brokers: LyingBrokers) -> None:
        super().__init__()
        self.brokers = brokers

    def add(self, count):
        for partition, share in ((0, count // 3), (1, count - count // 3)):
            log = self.brokers.logs[partition]
            self.rows += [[b"0/%d/%d" % (partition, log.high + number)] for number in range(share)]
            log.high += share
        self.brokers.now_s += 60

    def spout(self):
        return KafkaTransactionalSpout(KafkaTopic(SERVERS, TOPIC), messages_per_batch=4)

    def other_spout(self):
        return KafkaTransactionalSpout(KafkaTopic(SERVERS, "another"))

    def take_away(self):
        for log in self.brokers.logs:
            log.low = 3


class OpaqueKafkaWorld(KafkaWorld):
    def spout(self):
        return KafkaOpaqueSpout(KafkaTopic(SERVERS, TOPIC), messages_per_partition=2)


@pytest.fixture
def brokers():
    made = LyingBrokers((), logs=[Log(), Log()])
    with made.installed():
        yield made


class TestTransactional(SourceContract):
    @pytest.fixture
    def world(self, brokers):
        return KafkaWorld(brokers)


class TestOpaque(RestoreContract):
    @pytest.fixture
    def world(self, brokers):
        return OpaqueKafkaWorld(brokers)


class BrokerWorld(SourceWorld):
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
            share = [value.encode() for value in values[partition :: self._partitions]]
            produce(self._broker.address, self._topic, share, partition)
        self.rows += [[value] for value in values]

    def spout(self):
        topic = KafkaTopic(self._broker.address, self._topic, TextLine("value"))
        return KafkaTransactionalSpout(topic, messages_per_batch=4)

    def other_spout(self):
        topic = self._make_topic()
        produce(self._broker.address, topic, [b"another"])
        return KafkaTransactionalSpout(KafkaTopic(self._broker.address, topic, TextLine("value")))

    def take_away(self):
        places = [TopicPartition(self._topic, partition, 3) for partition in range(self._partitions)]
        self._broker.admin_do(lambda admin: admin.delete_records(places)[places[0]])
        worker_readers().close()  # a new run has nothing read ahead


class WideBrokerWorld(BrokerWorld):
    is_ordered = False


@pytest.mark.kafka
class TestOnePartitionOnBroker(SourceContract):
    @pytest.fixture
    def world(self, broker, make_topic):
        return BrokerWorld(broker, make_topic, 1)


@pytest.mark.kafka
@pytest.mark.nightly
class TestSeveralPartitionsOnBroker(SourceContract):
    @pytest.fixture
    def world(self, broker, make_topic):
        return WideBrokerWorld(broker, make_topic, 3)
