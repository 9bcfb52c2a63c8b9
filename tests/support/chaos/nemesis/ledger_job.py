"""The job under fire: transfers between accounts, whose balances add up to zero whatever happens.

Apart from the balances it keeps, for each partition, how many rows are in, the sum of their weights and, if its
committers read state, a checksum over their order; and the txid that wrote last. A row that is lost, doubled or
exchanged, a transaction that is torn or out of order: each of them shows.

The input has no end until its file says so: the file holds the number of rows of each partition once it is known.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.spouts.committing import SpoutCommitter
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ValueState
from state.attempt import TransactionAttempt
from tests.support.scenarios.transfer_spouts import CutSpout, OpaqueSpout, PartitionedSpout, Supply, ToldCutSpout
from tests.support.scenarios.transfers import chained, weight

TAKE = 4
"""Rows of each partition in a transaction; where the boundaries move, from none to twice as many."""
SHARDS = 3
ENDLESS = 1 << 40


class Told(SpoutCommitter):
    """Is told of every transaction that is durable, some of them twice."""

    def commit(self, attempt: TransactionAttempt) -> None:
        """Does nothing; what matters is that a driver may die here."""


class Input(Supply):
    """How much of the input there is.

    Args:
        end_path: file that holds the number of rows of each partition; while it is missing there is no end.
    """

    def __init__(self, end_path: str) -> None:
        self._path = Path(end_path)
        self._end = ENDLESS

    def end(self) -> int:
        if self._end == ENDLESS and self._path.exists():
            self._end = int(self._path.read_text(encoding="ascii"))
        return self._end

    def take(self) -> int:
        return random.randint(0, 2 * TAKE)

    def cut(self) -> int:
        return TAKE

    def committer(self) -> Told:
        return Told()


class ToldSpout(ToldCutSpout):
    """Its committer destroys nothing."""

    destruction = ""


SPOUTS: dict[str, Any] = {"cut": CutSpout, "told": ToldSpout, "partitioned": PartitionedSpout, "opaque": OpaqueSpout}


class Post(BaseBatchBolt):
    """Makes two postings of each transfer, each on one of the shards of its account, and hands the row on."""

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(("shard", "amount"))
        declarer.declare_stream("audit", ("partition", "row"))

    def execute(self, tup):
        partition, row, debit, credit, amount = tup
        self.collector.emit([f"{debit}/{row % SHARDS}", -amount])
        self.collector.emit([f"{credit}/{(row + 1) % SHARDS}", amount])
        self.collector.emit([partition, row], "audit")


class Balances(BaseBatchBolt, ICommitter):
    """Adds up the postings of its shards."""

    balances = HashState("balances", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.amounts: Counter[str] = Counter()

    def execute(self, tup):
        self.amounts[tup["shard"]] += tup["amount"]

    def finish_batch(self):
        self.balances.increment_many(self.amounts)


class Audit(BaseBatchBolt, ICommitter):
    """Counts the rows of each partition, adds up their weights, and notes the txid; reads nothing."""

    seen = HashState("seen", value=int)
    weights = HashState("weights", value=int)
    order = HashState("order", value=int)
    last = ValueState("last", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.txid = attempt.txid
        self.rows: dict[int, list[int]] = {}

    def execute(self, tup):
        self.rows.setdefault(tup["partition"], []).append(tup["row"])

    def finish_batch(self):
        self.last.put(self.txid)
        for partition, found in self.rows.items():
            self.seen.increment(f"p{partition}", len(found))
            self.weights.increment(f"p{partition}", sum(weight(partition, row) for row in found))


class ReadingAudit(Audit):
    """The same, with a checksum over the rows in their order, which has to be read before it is written."""

    def finish_batch(self):
        super().finish_batch()
        before = self.order.get_many([f"p{partition}" for partition in self.rows])
        for partition, found in self.rows.items():
            checksum = before.get(f"p{partition}") or 0
            for row in sorted(found):
                checksum = chained(checksum, weight(partition, row))
            self.order.put(f"p{partition}", checksum)


STATES = (Balances.balances, Audit.seen, Audit.weights, Audit.order, Audit.last)


def topology(kind: str, reads: bool | str, end_path: str, topology_id: str, tasks: int = 2) -> Topology:
    """Returns the topology.

    Args:
        kind: of spout, one of `SPOUTS`.
        reads: whether a committer reads state, so that nothing commits in the wave's own job.
        end_path: see `Input`.
        topology_id: names the topology and its keys.
        tasks: of all components but one.
    """
    spout = SPOUTS[kind]("transfers", Input(end_path))
    builder = TransactionalTopologyBuilder(topology_id, "transfers", spout, parallelism=int(tasks))
    builder.set_bolt("post", Post(), int(tasks)).shuffle_grouping("transfers")
    builder.set_committer_bolt("balances", Balances(), int(tasks)).fields_grouping("post", ("shard",))
    audit = ReadingAudit() if str(reads).lower() == "true" else Audit()
    builder.set_committer_bolt("audit", audit, 1).global_grouping("post", "audit")
    return builder.build()
