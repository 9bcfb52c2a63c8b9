"""Loads everything that plays need before copies of the process are made, so that no copy has to load it again."""

from __future__ import annotations

from functools import cache

from committers.committer import ICommitter
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.streams.tuples import Tuple
from coordinator.proving.quiet_run import quiet_run
from coordinator.proving.schedule import Schedule
from coordinator.proving.stage_play import StagePlay
from coordinator.spouts.memory import FixedBatchesSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.kinds.handles import HashState


class _Smallest(BaseBatchBolt, ICommitter):
    """Reads and writes a field, and needs nothing of a user's."""

    fields = HashState("fields")

    def execute(self, tup: Tuple) -> None:
        """Needs no tuple."""

    def finish_batch(self) -> None:
        self.fields.put("any", (self.fields.get("any") or 0) + 1)


@cache
def warm_up() -> None:
    """Plays the smallest topology both ways, once in a process."""
    builder = TransactionalTopologyBuilder("smallest", "rows", FixedBatchesSpout([[["any"]]], ["row"]), parallelism=2)
    builder.set_committer_bolt("fields", _Smallest()).shuffle_grouping("rows")
    topology = builder.build()
    quiet_run(topology, 1)
    StagePlay(topology, Schedule(0, exactly=frozenset()), 1).play()
