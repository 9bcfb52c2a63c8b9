"""Counts the words of text files, exactly once, into the Redis hash ``{<topology_id>}:counts``.

Run it::

    txbatch run word_count.py:topology -p input='*.txt'

and read the answer with any client: ``HGETALL {word_count}:counts``.
"""

from collections import Counter, defaultdict

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import HashState, TextFiles, TransactionalTopologyBuilder


class CountWords(BaseBatchBolt):
    """Counts the whitespace-separated words of this task's lines, and emits one tuple per distinct word."""

    output_fields = ("word", "count")

    def prepare(self, conf, context, collector, attempt):
        self.collector, self.lines = collector, []

    def execute(self, tup):
        self.lines.append(tup["line"])

    def finish_batch(self):
        counts = Counter(" ".join(self.lines).split())
        self.collector.emit_all(counts.items())


class StoreCounts(BaseBatchBolt, ICommitter):
    """Adds the counts of each transaction to the stored ones."""

    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.total = defaultdict(int)

    def execute(self, tup):
        self.total[tup["word"]] += tup["count"]

    def finish_batch(self):
        self.counts.increment_many(self.total)


def topology(input, lines_per_batch=1000, topology_id="word_count"):
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
