"""What a simulation runs: transfers between accounts, read by every kind of spout, and what they have to leave.

A row says: partition p, row i, so much from one account to another. Balances sum to zero whatever happens; what
exactly they are follows from how many rows of each partition are in, however they were cut into batches.
The second committer counts the rows of each partition and adds up a weight of each, so that a row that is lost,
doubled or exchanged for another one shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.declared import OutputFieldsDeclarer
from coordinator.spouts.committing import SpoutCommitter
from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.attempt import TransactionAttempt
from state.errors import FailedException
from state.values.state_kind import MAX_INTEGER
from tests.support.scenarios.transfer_spouts import (
    CutSpout,
    OpaqueSpout,
    PartitionedSpout,
    Supply,
    ToldCutSpout,
    ToldOpaqueSpout,
    ToldPartitionedSpout,
)
from tests.support.scenarios.transfers import weight

ROWS, SHARDS = 24, 3
TAKE, TAKES = 3, (0, 0, 1, 3, 6)
TOPOLOGY_ID, MARKS = "sim", "marks"


class World:
    """What user code sees of the simulation it is in; set while one runs.

    Attributes:
        faults: what goes wrong in user code.
        known_rows: rows of each partition that exist by now; the input may grow from run to run.
        durable: tells whether the server holds an attempt, for spouts that are told of it.
    """

    faults: ClassVar[FaultPlan]
    known_rows: ClassVar[int] = ROWS
    durable: ClassVar[Any] = None


def may_fail(fault: str) -> None:
    """Fails the attempt if the fault strikes."""
    if World.faults.strikes(fault):
        raise FailedException(f"{fault} by plan")


# Spouts --------------------------------------------------------------------------------------------------------


class Told(SpoutCommitter):
    """Must never hear of a transaction that the server does not hold."""

    def commit(self, attempt: TransactionAttempt) -> None:
        assert World.durable(attempt), f"told of {attempt}, which the server does not hold"


class WorldSupply(Supply):
    """What exists by now; a replay of an opaque spout may take another number of rows."""

    def end(self) -> int:
        return World.known_rows

    def take(self) -> int:
        moves = World.faults.strikes("input.moves")
        return World.faults.drawn("input.moves").choice(TAKES) if moves else TAKE

    def may_fail(self) -> None:
        may_fail("spout.fails")

    def committer(self) -> Told:
        return Told()


SPOUTS: dict[str, type[CutSpout | PartitionedSpout | OpaqueSpout]] = {
    "cut": CutSpout,
    "partitioned": PartitionedSpout,
    "opaque": OpaqueSpout,
    "told cut": ToldCutSpout,
    "told partitioned": ToldPartitionedSpout,
    "told opaque": ToldOpaqueSpout,
}


# Bolts ---------------------------------------------------------------------------------------------------------


class Once(BaseBatchBolt):
    """One instance serves one attempt on one task, and finishes it once, after everything it executes."""

    is_finished = False

    def expect_open(self) -> None:
        """Called with each tuple."""
        assert not self.is_finished, f"{type(self).__name__} was given a tuple after its batch was finished"

    def finish(self) -> None:
        """Called when the batch is finished."""
        assert not self.is_finished, f"{type(self).__name__} has finished its batch twice"
        self.is_finished = True


class Post(Once):
    """Makes two postings of each transfer, each on one of the shards of its account.

    The shard follows from the row; unless ``bolt.draws``: then every execution draws it, so that two runs of one
    task give what belongs together to different receivers.

    Args:
        shift: tells versions of the program apart; each takes other shards.
    """

    def __init__(self, shift: int = 0) -> None:
        self._shift = shift

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(("shard", "amount"))
        declarer.declare_stream("audit", ("partition", "row"))

    def execute(self, tup):
        self.expect_open()
        partition, row, debit, credit, amount = tup
        draw = World.faults.drawn("bolt.draws").random() if World.faults.strikes("bolt.draws") else 0.0
        shard = (row + self._shift + int(draw * SHARDS)) % SHARDS
        self.collector.emit([f"{debit}/{shard}", -amount])
        self.collector.emit([f"{credit}/{(shard + 1) % SHARDS}", amount])
        self.collector.emit([partition, row], "audit")

    def finish_batch(self):
        self.finish()
        may_fail("bolt.fails")


class Balances(Once, ICommitter):
    """Adds up the postings of its shards."""

    balances = HashState("balances", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.amounts: Counter[str] = Counter()

    def execute(self, tup):
        self.expect_open()
        self.amounts[tup["shard"]] += tup["amount"]

    def finish_batch(self):
        self.finish()
        may_fail("bolt.fails")
        self.balances.increment_many(self.amounts)


class Audit(Once, ICommitter):
    """Counts the rows of each partition, and adds up their weights."""

    seen = HashState("seen", value=int)
    weights = HashState("weights", value=int)

    def prepare(self, conf, context, collector, attempt):
        self.rows: dict[int, list[int]] = {}

    def execute(self, tup):
        self.expect_open()
        self.rows.setdefault(tup["partition"], []).append(tup["row"])

    def finish_batch(self):
        self.finish()
        for partition, found in self.rows.items():
            self.seen.increment(f"p{partition}", len(found))
            self.weights.increment(f"p{partition}", sum(weight(partition, row) for row in found))


class ReadingAudit(Audit):
    """The same, and looks whether the rows follow those that are committed."""

    def finish_batch(self):
        for partition, found in self.rows.items():
            first = self.seen.get(f"p{partition}") or 0
            assert sorted(found) == list(range(first, first + len(found))), f"rows {found} of {partition} after {first}"
        super().finish_batch()


class Marks(Once, ICommitter):
    """Notes the last row of each partition; at times it counts beyond what a state can hold."""

    marks: HashState[Any] = HashState(MARKS, value=int)

    def prepare(self, conf, context, collector, attempt):
        self.last: dict[int, int] = {}

    def execute(self, tup):
        self.expect_open()
        self.last[tup["partition"]] = tup["row"]

    def finish_batch(self):
        self.finish()
        for partition, row in self.last.items():
            self.marks.put(f"p{partition}", row)
        if World.faults.strikes("bolt.exceeds"):
            self.marks.increment("most", MAX_INTEGER)


class TextMarks(Marks):
    """The same, as text."""

    marks = HashState(MARKS, value=str)

    def finish_batch(self):
        self.finish()
        for partition, row in self.last.items():
            self.marks.put(f"p{partition}", str(row))


def topology(
    kind: str,
    *,
    reads: bool,
    tasks: Sequence[int],
    fingerprint: str = "transfers",
    marks: str = "",
    shift: int = 0,
    post: Post | None = None,
    audit: Audit | None = None,
) -> Topology:
    """One of the topologies.

    Args:
        kind: of spout.
        reads: whether a committer reads state, so that nothing commits early.
        tasks: of spout, bolt, committer and acker.
        fingerprint: of the input, which is the same whatever it says.
        marks: value type of the state of a third committer; "" for none.
        shift: version of the program.
        post: makes the postings, instead of the usual bolt.
        audit: counts the rows, instead of the usual committer.
    """
    spout = SPOUTS[kind](fingerprint, WorldSupply())
    builder = TransactionalTopologyBuilder(TOPOLOGY_ID, "transfers", spout, parallelism=tasks[0])
    builder.set_acker_count(tasks[3])
    builder.set_bolt("post", post or Post(shift), tasks[1]).shuffle_grouping("transfers")
    builder.set_committer_bolt("balances", Balances(), tasks[2]).fields_grouping("post", ("shard",))
    counting = audit or (ReadingAudit() if reads else Audit())
    builder.set_committer_bolt("audit", counting, 1).global_grouping("post", "audit")
    if marks:
        bolt = Marks() if marks == "int" else TextMarks()
        builder.set_committer_bolt("marks", bolt, 1).global_grouping("post", "audit")
    return builder.build()
