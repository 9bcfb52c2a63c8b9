"""Storm's first example as a plain topology: sentences, words, running counts; at least once, without transactions.

Run it; on Spark a bolt remembers one wave, and these sentences all fit into one::

    txbatch run examples.plain_word_count:topology -p output=counts.txt --stop-when-idle

Try it in a test, without Spark, where a bolt remembers the whole run::

    with LocalCluster(seed=7) as cluster:
        run = cluster.submit(topology(output="counts.txt"))
        run.run_until_idle()
        assert ("default", ["apple", 2]) in run.emitted("count")

If the answer must be exact and durable, use a transactional topology: `examples/word_count.py`.

Source: storm.starter.WordCountTopology.
"""

from collections import Counter, deque
from pathlib import Path

from coordinated_bolt import BaseBasicBolt, BaseSpout
from coordinator import TopologyBuilder

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature and an apple",
)


class Sentences(BaseSpout):
    """Emits every sentence, and emits it again if it failed."""

    output_fields = ("sentence",)

    def __init__(self, sentences):
        self.waiting = deque(enumerate(sentences))
        self.under_way = {}

    def next_tuple(self):
        if self.waiting:
            number, sentence = self.waiting.popleft()
            self.under_way[number] = sentence
            self.collector.emit([sentence], message_id=number)

    def ack(self, message_id):
        del self.under_way[message_id]

    def fail(self, message_id):
        self.waiting.append((message_id, self.under_way[message_id]))


class SplitSentence(BaseBasicBolt):
    """Emits every word; the framework anchors it on its sentence."""

    output_fields = ("word",)

    def execute(self, tup, collector):
        for word in tup["sentence"].split():
            collector.emit([word])


class WordCount(BaseBasicBolt):
    """Emits how often each word has occurred so far; equal words go to the same task."""

    output_fields = ("word", "count")

    def prepare(self, conf, context):
        self.counts: Counter[str] = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])


class AppendToFile(BaseBasicBolt):
    """Appends the counts to a file. Side effects of a plain bolt happen at least once: a crash may repeat lines."""

    def __init__(self, path):
        self.path = path

    def execute(self, tup, collector):
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(f"{tup['word']} {tup['count']}\n")


def topology(*, output, topology_id="plain_word_count"):
    """Returns the topology.

    Args:
        output: file to append the running counts to.
        topology_id: names the topology.
    """
    builder = TopologyBuilder(topology_id)
    builder.set_spout("sentences", Sentences(SENTENCES))
    builder.set_bolt("split", SplitSentence()).shuffle_grouping("sentences")
    builder.set_bolt("count", WordCount()).fields_grouping("split", ["word"])
    builder.set_bolt("append", AppendToFile(str(Path(output).absolute()))).global_grouping("count")
    return builder.build()
