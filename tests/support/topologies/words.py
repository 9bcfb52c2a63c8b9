"""Storm's word count, in its transactional form: each transaction is a word, and each running count is kept."""

from __future__ import annotations

from collections import Counter

from coordinator.spouts.memory import MemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState
from tests.support.runs.collecting import Collecting

WORDS = ("nathan", "bob", "joey", "nathan")


class CountWord(Collecting):
    """Counts words and hands on each with its running count."""

    output_fields = ("word", "count")
    counts = HashState("counts")

    def finish_batch(self):
        for word in self.column("word"):
            self.counts.increment(word)
            self.collector.emit([word, self.counts.get(word)])


class NoteCounts(Collecting):
    """Keeps every running count, in order, and how many there were so far."""

    noted = ListState("noted")
    total = ListState("total", value=int)
    words = HashState("words")

    def finish_batch(self):
        for word, count in self.tuples:
            self.noted.append(f"{word} {count}")
            self.words.increment("all")
            self.total.append(self.words.get("all") or 0)


def words_topology() -> Topology:
    """words -> count (by word, 3 tasks) -> note (one task)."""
    spout = MemoryTransactionalSpout({0: [[word] for word in WORDS]}, ["word"], 1)
    builder = TransactionalTopologyBuilder("words", "words", spout)
    builder.set_committer_bolt("count", CountWord(), parallelism=3).fields_grouping("words", ["word"])
    builder.set_committer_bolt("note", NoteCounts()).global_grouping("count")
    return builder.build()


def counts_of_words(words: tuple[str, ...]) -> dict[str, int]:
    """Word -> how often."""
    return dict(Counter(words))
