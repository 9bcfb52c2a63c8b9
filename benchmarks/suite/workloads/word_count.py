"""Counts words: adds many small numbers to many fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import redis
from redis.client import Pipeline

from benchmarks.task_counts import with_tasks
from coordinator.topology.building.topology import Topology
from examples.word_count import topology as word_count

TOPOLOGY_ID = "word_count"
KEY = f"{{{TOPOLOGY_ID}}}:counts"


def topology(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the topology: the shipped example."""
    return with_tasks(word_count(pattern, tuples, TOPOLOGY_ID), tasks)


def write(client: redis.Redis, pipeline: Pipeline, lines: list[str]) -> None:
    """Adds the counts of one batch (control)."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    for word, count in counts.items():
        pipeline.hincrby(KEY, word, count)
    pipeline.execute()


def expected(lines: Iterable[str]) -> object:
    """Returns what the server has to hold after these lines: an independent count."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return dict(counts)


def stored(client: redis.Redis) -> object:
    """Returns what the server holds."""
    return {word: int(count) for word, count in client.hgetall(KEY).items()}
