"""Keeps each line once: has to read what is stored before it writes, so its committer runs in a job of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import redis
from redis.client import Pipeline

from committers import ICommitter
from coordinated_bolt import BaseBatchBolt
from coordinator import TextFiles, TransactionalTopologyBuilder
from coordinator.topology.building.topology import Topology
from state import HashState, SetState

TOPOLOGY_ID = "dedup"
SEEN_KEY = f"{{{TOPOLOGY_ID}}}:seen"
COUNTS_KEY = f"{{{TOPOLOGY_ID}}}:counts"


def identity(line: str) -> str:
    """Returns what makes two lines the same."""
    return hashlib.blake2b(line.encode(), digest_size=8).hexdigest()


class Identify(BaseBatchBolt):
    """Emits each line's identity, and each only once in a batch and task."""

    output_fields = ("identity", "count")

    def prepare(self, conf, context, collector, attempt):  # type: ignore[no-untyped-def]
        self.collector, self.counts = collector, {}

    def execute(self, tup):  # type: ignore[no-untyped-def]
        found = identity(tup["line"])
        self.counts[found] = self.counts.get(found, 0) + 1

    def finish_batch(self):  # type: ignore[no-untyped-def]
        self.collector.emit_all(self.counts.items())


class KeepNew(BaseBatchBolt, ICommitter):
    """Adds what was never seen, and counts the new and the repeated."""

    seen = SetState("seen")
    counts = HashState("counts", value=int)

    def prepare(self, conf, context, collector, attempt):  # type: ignore[no-untyped-def]
        self.mine = {}

    def execute(self, tup):  # type: ignore[no-untyped-def]
        self.mine[tup["identity"]] = self.mine.get(tup["identity"], 0) + tup["count"]

    def finish_batch(self):  # type: ignore[no-untyped-def]
        known = self.seen.contains_many(self.mine)
        new = [found for found, is_known in known.items() if not is_known]
        for found in new:
            self.seen.add(found)
        self.counts.increment("new", len(new))
        self.counts.increment("repeated", sum(self.mine.values()) - len(new))


def topology(pattern: str, tuples: int, tasks: int) -> Topology:
    """Returns the topology."""
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "lines", TextFiles(pattern, tuples), parallelism=tasks)
    builder.set_bolt("identify", Identify(), parallelism=tasks).shuffle_grouping("lines")
    builder.set_committer_bolt("keep", KeepNew(), parallelism=tasks).fields_grouping("identify", ["identity"])
    return builder.build()


def write(client: redis.Redis, pipeline: Pipeline, lines: list[str]) -> None:
    """Adds one batch (control): reads in one round trip, writes in a second one."""
    mine = dict.fromkeys(map(identity, lines))
    known = client.smismember(SEEN_KEY, list(mine))
    new = [found for found, is_known in zip(mine, known, strict=True) if not is_known]
    if new:
        pipeline.sadd(SEEN_KEY, *new)
    pipeline.hincrby(COUNTS_KEY, "new", len(new))
    pipeline.hincrby(COUNTS_KEY, "repeated", len(lines) - len(new))
    pipeline.execute()


def expected(lines: Iterable[str]) -> object:
    """Returns what the server has to hold after these lines."""
    count, seen = 0, set()
    for line in lines:
        count += 1
        seen.add(identity(line))
    return {"seen": seen, "new": len(seen), "repeated": count - len(seen)}


def stored(client: redis.Redis) -> object:
    """Returns what the server holds."""
    counts = {name: int(count) for name, count in client.hgetall(COUNTS_KEY).items()}
    return {"seen": set(client.smembers(SEEN_KEY)), **counts}
