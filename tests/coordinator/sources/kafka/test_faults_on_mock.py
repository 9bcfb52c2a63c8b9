"""librdkafka's own mock cluster: brokers that are slow, and that go away in the middle of a range."""

from __future__ import annotations

import socket

import pytest
from confluent_kafka import Producer

from coordinator.sources.kafka.client_settings import ClientSettings
from coordinator.sources.kafka.offset_ranges import OffsetRange
from coordinator.sources.kafka.partition_reader import make_reader
from coordinator.sources.kafka.topic import BrokerTopic
from state import FailedException

COUNT = 5000


class MockCluster:
    """Lives in a client, and dies with it."""

    def __init__(self, **options):
        self._client = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 0, **options})
        brokers = self._client.list_topics(timeout=10).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        for number in range(COUNT):
            self._client.produce("t", b"%d" % number, partition=0)
        assert self._client.flush(30) == 0

    def die(self):
        del self._client


@pytest.fixture
def reader_of():
    made = []

    def make(cluster, silence_s=20.0):
        settings = ClientSettings(cluster.servers, {"reconnect.backoff.max.ms": 100})
        made.append(make_reader(settings, "t", 0, reads_committed=True, silence_s=silence_s))
        return made[-1]

    yield make
    for reader in made:
        reader.close()


def read(reader, first, after):
    return [each.offset() for portion in reader.read(OffsetRange(first, after)) for each in portion]


def test_slow_brokers_give_the_same(reader_of):
    cluster = MockCluster(**{"test.mock.broker.rtt": 200})
    reader = reader_of(cluster)
    assert read(reader, 10, COUNT) == list(range(10, COUNT))
    assert read(reader, 10, 30) == list(range(10, 30))
    cluster.die()


def test_brokers_that_go_away_fail_the_attempt_with_the_reason(reader_of):
    cluster = MockCluster()
    reader = reader_of(cluster, silence_s=1.0)
    assert read(reader, 0, 10) == list(range(10))
    cluster.die()
    with pytest.raises(FailedException, match=r"reading offsets 0 to 4999 of partition 0 of 't' at .* failed"):
        read(reader, 0, COUNT)


def test_brokers_nobody_reaches_are_tried_again(unused_port):
    topic = BrokerTopic(ClientSettings(f"127.0.0.1:{unused_port}", {}), "t", reads_committed=True)
    with pytest.raises(FailedException, match=r"check that they run, and their port and security\.protocol"):
        topic.look()


@pytest.fixture
def unused_port():
    with socket.socket() as bound:  # bound and not listening: connections are refused
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
