"""Topologies whose source, bolts and committers each refuse some tuples, and which tuples those are."""

from __future__ import annotations

from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.tuples import Tuple
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.spouts.transactional import SpoutEmitter
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.attempt import TransactionAttempt
from state.commits.dead_letters import DeadLetter

Refused = tuple[int, str, int]
"""(txid, component, number)."""


class Numbers(FixedBatchesSpout):
    """Emits the numbers of each batch, and refuses those divisible by 11."""

    def __init__(self, batches: list[list[int]]) -> None:
        super().__init__([[[number] for number in batch if number % 11] for batch in batches], ["number"])
        self.refused = [[number for number in batch if number % 11 == 0] for batch in batches]

    def get_emitter(self, conf, context):
        return _Refusing(super().get_emitter(conf, context), self.refused, context.task_index)


class _Refusing(SpoutEmitter):
    def __init__(self, inner: SpoutEmitter, refused: list[list[int]], task_index: int) -> None:
        self.inner, self.refused, self.task_index = inner, refused, task_index

    def emit_batch(self, attempt: TransactionAttempt, metadata: Any, collector: Any) -> None:
        self.inner.emit_batch(attempt, metadata, collector)
        for number in self.refused[attempt.txid - 1] if self.task_index == 0 else []:
            collector.dead_letter({"number": number}, "divisible by 11")


def divides(divisor: int, tup: Tuple) -> bool:
    """Whether it divides the number; a frame that a test has altered may carry anything else."""
    return isinstance(tup["number"], int) and tup["number"] % divisor == 0


class Check(BaseBasicBolt):
    """Refuses numbers divisible by 3 as they are executed, and passes on the others."""

    output_fields = ("number",)

    def execute(self, tup, collector):
        if divides(3, tup):
            collector.dead_letter(tup, "divisible by 3")
        else:
            collector.emit([tup["number"]])


class CheckLate(BaseBatchBolt):
    """Refuses numbers divisible by 5 in `finish_batch`, and passes on the others."""

    output_fields = ("number",)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.kept: list[Any] = []

    def execute(self, tup):
        self.kept.append(tup)

    def finish_batch(self):
        for tup in self.kept:
            if divides(5, tup):
                self.collector.dead_letter(tup, "divisible by 5")
            else:
                self.collector.emit([tup["number"]])


class Add(BaseBatchBolt, ICommitter):
    """Refuses numbers divisible by 7, adds up the others, and passes them on; may read what it adds to."""

    output_fields = ("number",)
    sums: HashState
    is_reading = False

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.total = 0

    def execute(self, tup):
        if divides(7, tup):
            self.collector.dead_letter(tup, "divisible by 7")
        elif isinstance(tup["number"], int):
            self.total += tup["number"]
            self.collector.emit([tup["number"]])

    def finish_batch(self):
        if self.is_reading:
            self.sums.put("sum", (self.sums.get("sum") or 0) + self.total)
        else:
            self.sums.increment("sum", self.total)


class AddBlindly(Add):
    sums = HashState("sums")


class AddReading(Add):
    sums = HashState("sums")
    is_reading = True


class Last(BaseBatchBolt):
    """A bolt below the committer; refuses numbers divisible by 2."""

    def execute(self, tup):
        if divides(2, tup):
            self.collector.dead_letter(tup, "divisible by 2")


def refusing(
    batches: list[list[int]], *, tasks: int = 2, adds: Add | None = None, below: bool = False, **limits: int
) -> Topology:
    """source -> check -> late -> add, and with `below` -> last; every component but the source has `tasks` tasks."""
    builder = TransactionalTopologyBuilder("refusing", "source", Numbers(batches), parallelism=2)
    builder.set_bolt("check", Check(), parallelism=tasks).shuffle_grouping("source")
    builder.set_bolt("late", CheckLate(), parallelism=tasks).shuffle_grouping("check")
    adding = 1 if adds is not None and adds.is_reading else tasks
    builder.set_bolt("add", adds or AddBlindly(), parallelism=adding).shuffle_grouping("late")
    if below:
        builder.set_bolt("last", Last(), parallelism=tasks).shuffle_grouping("add")
    builder.set_dead_letters(**limits)
    return builder.build()


def expected_letters(batches: list[list[int]], *, below: bool = False) -> tuple[list[Refused], int]:
    """Which numbers are refused, where, sorted; and the sum of those that are not."""
    refused: list[Refused] = []
    total = 0
    refusing = [(11, "source"), (3, "check"), (5, "late"), (7, "add")]
    for txid, batch in enumerate(batches, start=1):
        for number in batch:
            where = next((name for divisor, name in refusing if number % divisor == 0), None)
            if where is not None:
                refused.append((txid, where, number))
                continue
            total += number
            if below and number % 2 == 0:
                refused.append((txid, "last", number))
    return sorted(refused), total


def refused_by(letters: list[DeadLetter]) -> list[Refused]:
    """What letters say was refused, sorted; fails unless they are numbered in order."""
    assert letters == sorted(letters, key=lambda letter: (letter.txid, letter.number))
    for txid in {letter.txid for letter in letters}:
        numbers = [letter.number for letter in letters if letter.txid == txid]
        assert numbers == list(range(len(numbers)))
    return sorted((letter.txid, letter.component_id, letter["number"]) for letter in letters)
