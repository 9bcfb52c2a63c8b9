"""The spout and the bolts that most Spark tests are made of: numbers, passed on and counted."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.transactional import ITransactionalSpout, SpoutCoordinator, SpoutEmitter
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState


class Numbers(ITransactionalSpout):
    """The numbers 0, 1, 2, … in transactions of `size`."""

    output_fields = ("number",)

    def __init__(self, transactions, size=8):
        self.transactions, self.size = transactions, size

    def get_coordinator(self, conf, context):
        return NumberCutter(self.transactions, self.size)

    def get_emitter(self, conf, context):
        return NumberEmitter(context)


class NumberCutter(SpoutCoordinator):
    def __init__(self, transactions, size):
        self.transactions, self.size, self.last_txid = transactions, size, 0

    def resume(self):
        self.last_txid = self.run_so_far.last_txid

    def is_ready(self):
        return self.last_txid < self.transactions

    def initialize_transaction(self, txid, previous):
        self.last_txid = txid
        return [(txid - 1) * self.size, txid * self.size]

    def is_exhausted(self):
        return self.last_txid >= self.transactions


class NumberEmitter(SpoutEmitter):
    def __init__(self, context):
        self.context = context

    def emit_batch(self, attempt, metadata, collector):
        first, end = metadata
        share = range(first + self.context.task_index, end, self.context.task_count)
        collector.emit_all([number] for number in share)


class Pass(BaseBatchBolt):
    """Hands numbers on as they come."""

    output_fields = ("number",)

    def execute(self, tup):
        self.collector.emit([tup["number"]])


class Store(BaseBatchBolt, ICommitter):
    """Counts how often each number came, and what each transaction's numbers add up to."""

    counts = HashState("counts", value=int, field=int)
    sums = HashState("sums", value=int, field=int)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.numbers: Counter[int] = Counter()

    def execute(self, tup):
        self.numbers[tup["number"]] += 1

    def finish_batch(self):
        for number, count in self.numbers.items():
            self.counts.increment(number, count)
            self.sums.increment(self.attempt.txid, number * count)


def numbers_topology(
    transactions,
    *,
    size=8,
    parallelism=2,
    work=None,
    store=None,
    ackers=1,
    message_timeout_s=None,
    is_chained=True,
):
    """numbers -> work (shuffle, chained) -> store (fields)."""
    builder = TransactionalTopologyBuilder("numbers", "numbers", Numbers(transactions, size), parallelism=parallelism)
    worker = builder.set_bolt("work", work or Pass(), parallelism=parallelism).shuffle_grouping("numbers")
    if not is_chained:
        worker.disable_chaining()
    builder.set_committer_bolt("store", store or Store(), parallelism=parallelism).fields_grouping("work", ["number"])
    builder.set_acker_count(ackers)
    if message_timeout_s is not None:
        builder.set_message_timeout_s(message_timeout_s)
    return builder.build()


def exact_counts(transactions, size=8):
    """What `Store` has to leave in ``{numbers}:counts``."""
    return {str(number): 1 for number in range(transactions * size)}


def exact_sums(transactions, size=8):
    """What `Store` has to leave in ``{numbers}:sums``."""
    return {str(txid): sum(range((txid - 1) * size, txid * size)) for txid in range(1, transactions + 1)}


def once(marker):
    """Whether this is the first call for a marker file, among all processes; True once."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def note(path, *what):
    """Appends one line to a file that several processes write; a short write is atomic."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def notes(path):
    """The lines noted so far."""
    file = Path(path)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
