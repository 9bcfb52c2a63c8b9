"""Kafka spouts keep the contract of all sources, on brokers in memory; `test_contract_on_broker` has a real one."""

from __future__ import annotations

import pytest

from coordinator.sources.kafka import KafkaOpaqueSpout, KafkaTopic, KafkaTransactionalSpout
from tests.coordinator.sources.contract import RestoreContract, SourceContract, SourceWorld
from tests.support.kafka.lying_brokers import SERVERS, TOPIC, Log, LyingBrokers


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
