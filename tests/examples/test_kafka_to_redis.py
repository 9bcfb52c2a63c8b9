"""The page views that the example writes to a topic are counted as a plain consumer counts them."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import fakeredis
import pytest
from confluent_kafka import Consumer

from coordinator.testing.cluster.cluster import LocalCluster
from examples.kafka_to_redis import make_data, sample, topology
from tests.support.examples.answers import fill
from tests.support.examples.page import Section, replied

TOPIC, MESSAGES = "views_of_the_example", 400


def consumed(address):
    """What a client finds in the topic, from its beginning to as many messages as were written."""
    given = {"bootstrap.servers": address, "group.id": "counts", "auto.offset.reset": "earliest", "log_level": 0}
    with closing(Consumer(given)) as consumer:
        consumer.subscribe([TOPIC])
        return Counter((message.value() or b"").decode() for message in consumer.consume(MESSAGES, 30.0))


@pytest.mark.kafka
@pytest.mark.nightly
def test_views_are_those_that_a_plain_consumer_counts(broker):
    make_data(broker.address, TOPIC, MESSAGES, partitions=2)
    with LocalCluster(seed=3) as cluster:
        run = cluster.submit(topology(broker.address, TOPIC, messages_per_batch=60))
        run.run_until_idle()
        assert run.is_done
        views = run.state("views")
    assert views == consumed(broker.address)
    assert sum(views.values()) == MESSAGES


def test_the_page_shows_the_views_of_its_sample():
    with fakeredis.FakeRedis(decode_responses=True) as client:
        fill(client, "page_views", {"views": Counter(sample())})
        (shown,) = Section("kafka_to_redis").shown()
        assert replied(client, shown) == shown.values()
