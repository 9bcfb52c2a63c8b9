"""Counts the words of a small input in memory, all of them together: Redis string ``{global_count}:total``.

Run it::

    txbatch run examples.global_count:topology

The input has three partitions, of which every transaction takes three words each as long as there are any: batches
of 9, 7 and 3 words, then an empty one. After each, the total is 9, 16, 19 and 19. Try it in a test, without Spark::

    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(topology())
        run.run_until_idle()
        assert run.state("total") == 19

Source: storm.starter.TransactionalGlobalCount.
"""

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import MemoryTransactionalSpout, TransactionalTopologyBuilder
from state import ValueState

PARTITIONS = {
    0: ["cat", "dog", "chicken", "cat", "dog", "apple"],
    1: ["cat", "dog", "apple", "banana"],
    2: ["cat", "cat", "cat", "cat", "cat", "dog", "dog", "dog", "dog"],
}


class BatchCount(BaseBatchBolt):
    """Counts this task's share of a batch, so that one small tuple travels on."""

    output_fields = ("count",)

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.count = collector, 0

    def execute(self, tup):
        self.count += 1

    def finish_batch(self):  # also of a batch without a word
        self.collector.emit([self.count])


class UpdateGlobalCount(BaseBatchBolt, ICommitter):
    """Keeps the running total, and the transaction it is the total of."""

    total = ValueState("total", value=int)
    txid = ValueState("txid", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.attempt, self.sum = attempt, 0

    def execute(self, tup):
        self.sum += tup["count"]

    def finish_batch(self):
        # Storm's example compares the stored txid with its own, not to add a batch twice; here that cannot happen,
        # and the txid is kept only for whoever reads the total.
        self.total.increment(self.sum)
        self.txid.put(self.attempt.txid)


def topology(*, words_per_partition=3, empty_batches=1, topology_id="global_count", parallelism=5):
    """The topology.

    Args:
        words_per_partition: how many words a transaction takes of each partition.
        empty_batches: transactions that follow when everything is read.
        topology_id: names the topology and its keys.
        parallelism: tasks that count; the total is kept by one.
    """
    rows = {partition: [[word] for word in words] for partition, words in PARTITIONS.items()}
    spout = MemoryTransactionalSpout(rows, ["word"], words_per_partition, empty_batches=empty_batches)
    builder = TransactionalTopologyBuilder(topology_id, "words", spout, parallelism=len(rows))
    builder.set_bolt("partial_count", BatchCount(), parallelism=parallelism).none_grouping("words")
    builder.set_committer_bolt("total", UpdateGlobalCount()).global_grouping("partial_count")
    return builder.build()
