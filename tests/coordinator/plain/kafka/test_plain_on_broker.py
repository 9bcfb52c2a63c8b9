"""`KafkaSpout` on a real broker, with its offsets in a real Redis."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.admin import NewPartitions

from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.sources.kafka import KafkaSpout, KafkaTopic, RetryRules
from coordinator.sources.records.plain_formats import TextLine
from coordinator.testing.cluster.cluster import LocalCluster
from state.errors import FailedException, SourceError
from tests.support.kafka.messages import numbers, produce

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
IDLE_ROUNDS = 50


class Seen(BaseBasicBolt):
    output_fields = ("value",)

    def prepare(self, conf, context):
        self.failed = set()

    def execute(self, tup, collector):
        if int(tup["value"]) % 7 == 0 and tup["value"] not in self.failed:
            self.failed.add(tup["value"])
            raise FailedException("the first time fails")
        collector.emit([tup["value"]])


def run(broker, topic, url, spout_class=KafkaSpout, **of_topic):
    """What is emitted by the bolt until the spout has nothing more."""
    source = KafkaTopic(broker.address, topic, TextLine("value"), **of_topic)
    spout = spout_class(source, redis=url, retries=RetryRules(0, 1, 0))
    builder = TopologyBuilder("plain_kafka")
    builder.set_spout("messages", spout, 2)
    builder.set_bolt("seen", Seen()).shuffle_grouping("messages")
    with LocalCluster(seed=5) as cluster:
        running = cluster.submit(builder.build())
        for _ in range(IDLE_ROUNDS):
            running.run_until_idle()
        seen = [values[0] for _, values in running.emitted("seen")]
        running.close()
    return seen


def test_every_message_is_processed_what_fails_again_and_the_next_run_reads_on(broker, make_topic, redis_backend):
    topic = make_topic(3)
    for partition in range(3):
        produce(broker.address, topic, numbers(100 * partition, 100 * partition + 30), partition)
    seen = run(broker, topic, redis_backend.url)
    assert sorted(map(int, seen)) == sorted(100 * p + n for p in range(3) for n in range(30))
    stored = redis_backend.client().hgetall("{plain_kafka}:txbatch:offsets")
    assert {name.decode(): json.loads(text)["offset"] for name, text in stored.items()} == {
        f"messages:{topic}:{partition}": 30 for partition in range(3)
    }
    produce(broker.address, topic, numbers(500, 503), 1)
    assert sorted(map(int, run(broker, topic, redis_backend.url))) == [500, 501, 502]


def test_a_partition_that_joined_between_runs_is_read_after_a_latest_start(broker, make_topic, redis_backend):
    topic = make_topic()
    produce(broker.address, topic, [b"1"])
    assert run(broker, topic, redis_backend.url, start="latest") == []
    broker.admin_do(lambda admin: admin.create_partitions([NewPartitions(topic, 2)])[topic])
    produce(broker.address, topic, numbers(1, 6), 1)
    assert sorted(map(int, run(broker, topic, redis_backend.url, start="latest"))) == [1, 2, 3, 4, 5]


class Unopened(KafkaSpout):
    """Its second task dies before it has opened."""

    def open(self, conf, context, collector):
        if context.task_index:
            raise SourceError("killed")
        super().open(conf, context, collector)


def test_a_run_that_dies_between_the_opens_of_its_tasks_has_stored_where_all_of_them_begin(
    broker, make_topic, redis_backend
):
    topic = make_topic(2)
    for partition in range(2):
        produce(broker.address, topic, [b"1"], partition)
    with pytest.raises(SourceError, match="killed"):
        run(broker, topic, redis_backend.url, spout_class=Unopened, start="latest")
    for partition in range(2):
        produce(broker.address, topic, numbers(2 + 2 * partition, 4 + 2 * partition), partition)
    assert sorted(map(int, run(broker, topic, redis_backend.url, start="latest"))) == [2, 3, 4, 5]
