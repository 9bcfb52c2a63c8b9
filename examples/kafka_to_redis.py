"""Counts page views from a Kafka topic, exactly once, into the Redis hash ``{<topology_id>}:views``.

A message is the path of a page, as text. Write some to a topic, which is made if it does not exist, and count them::

    python examples/kafka_to_redis.py localhost:9092 page_views
    txbatch run examples/kafka_to_redis.py:topology -p servers=localhost:9092 -p topic=page_views

Read the answer with any client: ``HGETALL {page_views}:views``. It needs the extra ``kafka``. It ends with the messages
that were there when it started; with ``-p follow=yes`` it waits for more until Ctrl-C or SIGTERM.
"""

import argparse
import random
from collections import Counter, defaultdict

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, KafkaTopic, KafkaTransactionalSpout, TransactionalTopologyBuilder
from coordinator.sources import TextLine


class CountPages(BaseBatchBolt):
    """Counts this task's messages by page, so that few tuples travel on."""

    output_fields = ("page", "views")

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.pages = collector, []

    def execute(self, tup):
        self.pages.append(tup["page"])

    def finish_batch(self):
        self.collector.emit_all(Counter(self.pages).items())


class StoreViews(BaseBatchBolt, ICommitter):
    """Adds the views of each transaction to the stored ones."""

    views = HashState("views", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.total = defaultdict(int)

    def execute(self, tup):
        self.total[tup["page"]] += tup["views"]

    def finish_batch(self):
        self.views.increment_many(self.total)


def topology(servers, topic, *, messages_per_batch=10_000, topology_id="page_views", parallelism=2, follow=False):
    """The topology.

    Args:
        servers: host:port of brokers, with commas between.
        topic: the topic.
        messages_per_batch: messages of one transaction.
        topology_id: names the topology and its keys.
        parallelism: tasks of every component; those of the spout share the partitions, which one task would read alone.
        follow: wait for new messages until Ctrl-C or SIGTERM, instead of ending with those that are there.
    """
    spout = KafkaTransactionalSpout(
        KafkaTopic(servers, topic, TextLine("page")), messages_per_batch=messages_per_batch, continuous=follow
    )
    builder = TransactionalTopologyBuilder(topology_id, "messages", spout, parallelism=parallelism)
    builder.set_bolt("count", CountPages(), parallelism=parallelism).local_or_shuffle_grouping("messages")
    builder.set_committer_bolt("store", StoreViews(), parallelism=parallelism).fields_grouping("count", ["page"])
    return builder.build()


def sample(messages=200_000, seed=7):
    """Yields page views; the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(messages):
        yield f"/page/{int(100 * draw.random() ** 2)}"


def make_data(servers, topic, messages=200_000, partitions=4):
    """Makes the topic if it does not exist, and writes page views to it.

    Args:
        servers: host:port of brokers, with commas between.
        topic: the topic.
        messages: how many.
        partitions: of a topic that is made.
    """
    admin = AdminClient({"bootstrap.servers": servers})
    if topic not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(topic, partitions)])[topic].result()
    options = {"bootstrap.servers": servers, "enable.idempotence": True, "queue.buffering.max.messages": 0}
    producer = Producer(options)
    for page in sample(messages):
        producer.produce(topic, page)
    producer.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes sample page views to a topic.")
    parser.add_argument("servers")
    parser.add_argument("topic")
    parser.add_argument("--messages", type=int, default=200_000)
    make_data(**vars(parser.parse_args()))
