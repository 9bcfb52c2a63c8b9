"""Counts words as `examples.word_count` does, with bolts that take whole batches, as columns, instead of tuples.

The counts are the same, in the same hash ``{<topology_id>}:counts``; only the calls are fewer. Run it::

    txbatch run examples.word_count_batches:topology -p input='docs/*.md'
"""

from collections import Counter

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, TextFiles, TransactionalTopologyBuilder


class CountWords(BaseBatchBolt):
    """Counts the whitespace-separated words of this task's lines, and emits one tuple per distinct word."""

    output_fields = ("word", "count")

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.lines = collector, []

    def execute_batch(self, batch):
        self.lines += batch.column("line")

    def finish_batch(self):
        counts = Counter(" ".join(self.lines).split())
        self.collector.emit_batch([counts.keys(), counts.values()])


class StoreCounts(BaseBatchBolt, ICommitter):
    """Adds the counts of each transaction to the stored ones."""

    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.batches = []

    def execute_batch(self, batch):
        self.batches.append(batch)

    def finish_batch(self):
        for batch in self.batches:
            self.counts.increment_many(batch.column("word"), batch.column("count"))


def topology(input, lines_per_batch=1000, topology_id="word_count_batches"):
    """Returns the topology.

    Args:
        input: path or glob of UTF-8 text files.
        lines_per_batch: lines in one transaction.
        topology_id: names the topology and its keys.
    """
    builder = TransactionalTopologyBuilder(topology_id, "lines", TextFiles(input, lines_per_batch))
    builder.set_bolt("count", CountWords()).shuffle_grouping("lines")
    builder.set_committer_bolt("store", StoreCounts()).fields_grouping("count", ["word"])
    return builder.build()
