"""Counts all words of a small in-memory input into one total: the Redis string ``{global_count}:total``.

Run it::

    txbatch run examples.global_count:topology

The input has three partitions. Every transaction takes three words from each, as long as there are any: batches of
9, 7 and 3 words, then an empty one. The total after each is 9, 16, 19 and 19. Try it in a test, without Spark::

    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(topology())
        run.run_until_idle()
        assert run.state("total") == 19

Source: storm.starter.TransactionalGlobalCount.
"""

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import MemoryTransactionalSpout, TransactionalTopologyBuilder, ValueState

PARTITIONS = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


class BatchCount(BaseBatchBolt):
    """Counts this task's share of a batch and emits the count as one small tuple."""

    output_fields = ("count",)

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.count = collector, 0

    def execute(self, tup):
        self.count += 1

    def finish_batch(self):  # called for an empty batch too
        self.collector.emit([self.count])


class UpdateGlobalCount(BaseBatchBolt, ICommitter):
    """Keeps the running total, and the txid of the last transaction in it."""

    total = ValueState("total", value=int)
    txid = ValueState("txid", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.attempt, self.sum = attempt, 0

    def execute(self, tup):
        self.sum += tup["count"]

    def finish_batch(self):
        # Storm's example compares the stored txid with its own in order not to add a batch twice. That cannot happen
        # here; the txid is stored only for those who read the total.
        self.total.increment(self.sum)
        self.txid.put(self.attempt.txid)


def topology(*, words_per_partition=3, empty_batches=1, topology_id="global_count", parallelism=5):
    """Returns the topology.

    Args:
        words_per_partition: how many words a transaction takes from each partition.
        empty_batches: how many empty transactions follow when everything has been read.
        topology_id: names the topology and its keys.
        parallelism: tasks that count; one task keeps the total.
    """
    rows = {partition: [[word] for word in words] for partition, words in PARTITIONS.items()}
    spout = MemoryTransactionalSpout(rows, ["word"], words_per_partition, empty_batches=empty_batches)
    builder = TransactionalTopologyBuilder(topology_id, "words", spout, parallelism=len(rows))
    builder.set_bolt("partial_count", BatchCount(), parallelism=parallelism).none_grouping("words")
    builder.set_committer_bolt("total", UpdateGlobalCount()).global_grouping("partial_count")
    return builder.build()
