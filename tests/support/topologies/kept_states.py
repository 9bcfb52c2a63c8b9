"""A topology with a state of every kind, whose content follows from the lines of its input alone."""

from __future__ import annotations

from collections.abc import Sequence

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinator.spouts.memory import MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState, ListState, SetState, SortedSetState, ValueState

LINES = tuple(f"word{number % 7}" for number in range(40))
TOPOLOGY_ID = "kept"


class KeepAll(BaseBatchBolt, ICommitter):
    """Keeps each word in every kind of state."""

    counts = HashState("counts", value=int)
    weights = HashState("weights", value=float)
    by_length = HashState("by_length", value=int, field=int)
    last = ValueState("last", value=str)
    seen = SetState("seen")
    ranks = SortedSetState("ranks")
    log = ListState("log", value=str)

    def prepare(self, conf, context, collector, attempt):
        super().prepare(conf, context, collector, attempt)
        self.words: list[str] = []

    def execute(self, tup):
        self.words.append(tup["word"])

    def finish_batch(self):
        for word in self.words:
            self.counts.increment(word)
            self.weights.increment(word, 0.5)
            self.by_length.increment(len(word))
            self.seen.add(word)
            self.ranks.increment(word, 1)
            self.log.append(word)
            self.last.put(word)


def kept_topology(
    lines: Sequence[str] = LINES, *, lines_per_batch: int = 5, topology_id: str = TOPOLOGY_ID, is_opaque: bool = False
) -> Topology:
    """words -> keep, one task each."""
    kind = OpaqueMemoryTransactionalSpout if is_opaque else MemoryTransactionalSpout
    spout = kind({0: [[word] for word in lines]}, ["word"], lines_per_batch)
    builder = TransactionalTopologyBuilder(topology_id, "words", spout)
    builder.set_committer_bolt("keep", KeepAll()).global_grouping("words")
    return builder.build()
