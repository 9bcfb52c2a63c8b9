"""A user's module in a folder that no executor can see: bolts whose work changes when it is done again.

A test copies it away from the repository and has it shipped.
"""

import json
import random
from pathlib import Path

import state
from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, SetState

LANES = ("a", "d")
"""They hash to different tasks of two."""


def lane(number):
    return LANES[number // 10 % len(LANES)]


def numbers(transactions, size):
    """Numbers, each in the lane of its tens."""
    starts = range(0, transactions * size, size)
    return FixedBatchesSpout(
        [[[n, lane(n)] for n in range(first, first + size)] for first in starts], ["number", "lane"]
    )


class Work(BaseBatchBolt):
    """Emits (number, task, mark, origin); the mark decides who gets it. Notes every time it does an attempt."""

    output_fields = ("number", "task", "mark", "origin")

    def __init__(self, notes):
        self.notes = str(notes)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.origin = random.getrandbits(40) if self.is_random else 0
        self.place = 0

    is_random = False

    def mark(self):
        """Mark of the tuple that is executed."""
        return self.place

    def execute(self, tup):
        self.place += 1
        self.collector.emit([tup["number"], self.context.task_index, self.mark(), self.origin])

    def finish_batch(self):
        with Path(self.notes).open("a", encoding="utf-8") as file:
            file.write(json.dumps([str(self.attempt), self.context.task_index, __file__, state.__file__]) + "\n")


class RoundRobin(Work):
    """Numbers go round robin: to whom depends on the order in which they come."""


class RandomMark(Work):
    """Every time the work is done numbers go somewhere else; the origin tells the times apart."""

    is_random = True

    def mark(self):
        return random.getrandbits(40)


class OrderMark(Work):
    """The mark is the place of a number among those that came to this task."""


class Relay(BaseBatchBolt):
    """Hands on what it gets: its output survives when the executor that did the work is lost."""

    output_fields = Work.output_fields

    def execute(self, tup):
        self.collector.emit(tup.values)


class Store(BaseBatchBolt, ICommitter):
    """Counts numbers, their weight in their transaction, and who did the work."""

    counts = HashState("counts", value=int, field=int)
    sizes = HashState("sizes", value=int, field=int)
    weights = HashState("weights", value=int, field=int)
    workers = SetState("workers")

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.tuples = []

    def execute(self, tup):
        self.tuples.append(tup.values)

    def finish_batch(self):
        for number, task, mark, origin in self.tuples:
            self.counts.increment(number)
            self.sizes.increment(self.attempt.txid)
            self.weights.increment(self.attempt.txid, number * mark % 1_000_003)
            self.workers.add(f"{self.attempt.txid} {task} {origin}")


def topology(topology_id, work, transactions, size):
    """numbers -> work (by lane) -> relay (round robin, or by mark) -> store (by number)."""
    builder = TransactionalTopologyBuilder(topology_id, "numbers", numbers(transactions, size), parallelism=2)
    builder.set_bolt("work", work, parallelism=len(LANES)).fields_grouping("numbers", ["lane"])
    relay = builder.set_bolt("relay", Relay(), parallelism=2)
    if isinstance(work, RoundRobin):
        relay.shuffle_grouping("work")
    else:
        relay.fields_grouping("work", ["mark"])
    builder.set_committer_bolt("store", Store(), parallelism=2).fields_grouping("relay", ["number"])
    return builder.build()
