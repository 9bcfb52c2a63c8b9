"""Counts page views from a Kafka topic, exactly once, into the Redis hash ``{<topology_id>}:views``.

A message is the path of a page, as text. Run it::

    txbatch run examples.kafka_to_redis:topology -p servers=localhost:9092 -p topic=page_views

and read the answer with any client: ``HGETALL {page_views}:views``.
"""

from collections import Counter, defaultdict

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TransactionalTopologyBuilder
from coordinator.sources import TextLine
from coordinator.sources.kafka import KafkaTransactionalSpout
from state import HashState


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


def topology(servers, topic, *, messages_per_batch=10_000, topology_id="page_views", parallelism=2, follow=""):
    """The topology.

    Args:
        servers: host:port of brokers, with commas between.
        topic: the topic.
        messages_per_batch: messages of one transaction.
        topology_id: names the topology and its keys.
        parallelism: tasks of every component.
        follow: anything but nothing waits for new messages until Ctrl-C; else the run ends with what is there.
    """
    tasks = int(parallelism)
    spout = KafkaTransactionalSpout(
        servers, topic, TextLine("page"), messages_per_batch=messages_per_batch, continuous=bool(follow)
    )
    builder = TransactionalTopologyBuilder(topology_id, "messages", spout, parallelism=tasks)
    builder.set_bolt("count", CountPages(), parallelism=tasks).local_or_shuffle_grouping("messages")
    builder.set_committer_bolt("store", StoreViews(), parallelism=tasks).fields_grouping("count", ["page"])
    return builder.build()
