"""Ranks words by how often they occur: adds to the scores of a sorted set, whose top anybody can read at any time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import redis
from redis.client import Pipeline

from benchmarks.suite.workloads.word_count import expected as counted_words
from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TextFiles, TransactionalTopologyBuilder
from coordinator.topology.building.topology import Topology
from examples.word_count import CountWords
from state import SortedSetState

TOPOLOGY_ID = "top_k"
KEY = f"{{{TOPOLOGY_ID}}}:ranking"


class Rank(BaseBatchBolt, ICommitter):
    """Adds the counts of each transaction to the ranking."""

    ranking = SortedSetState("ranking")

    def prepare(self, conf, context, collector, attempt):  # type: ignore[no-untyped-def]
        self.total = defaultdict(int)

    def execute(self, tup):  # type: ignore[no-untyped-def]
        self.total[tup["word"]] += tup["count"]

    def finish_batch(self):  # type: ignore[no-untyped-def]
        for word, count in self.total.items():
            self.ranking.increment(word, float(count))


def topology(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the topology."""
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "lines", TextFiles(pattern, tuples), parallelism=tasks)
    builder.set_bolt("count", CountWords(), parallelism=tasks).shuffle_grouping("lines")
    builder.set_committer_bolt("rank", Rank(), parallelism=tasks).fields_grouping("count", ["word"])
    return builder.build()


def write(client: redis.Redis, pipeline: Pipeline, lines: list[str]) -> None:
    """Adds the counts of one batch (control)."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    for word, count in counts.items():
        pipeline.zincrby(KEY, count, word)
    pipeline.execute()


def expected(lines: Iterable[str]) -> object:
    """Returns what the server has to hold after these lines."""
    return counted_words(lines)


def stored(client: redis.Redis) -> object:
    """Returns what the server holds."""
    ranking: Any = client.zrange(KEY, 0, -1, withscores=True)
    return dict(ranking)
