"""Plays a schedule tuple by tuple, on a `LocalCluster`: tuples of different tasks come in any order."""

from __future__ import annotations

from random import Random

from coordinator.engines.local.cluster import LocalCluster
from coordinator.proving.quiet_run import Kept, letters_of
from coordinator.proving.schedule import OTHER_ORDER, OTHER_TASKS, Played, Schedule
from coordinator.proving.subject import described_tasks, with_other_tasks
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.errors import TransactionError
from state.printable import said_by


class TuplePlay:
    """One schedule.

    Args:
        topology: what is run.
        schedule: what is played.
        batches: the last transaction.
    """

    def __init__(self, topology: Topology, schedule: Schedule, batches: int) -> None:
        self._topology, self._schedule, self._batches = topology, schedule, batches

    def play(self) -> Played:
        """Plays it to its end."""
        topology, faults, draw = self._topology, self._schedule.plan(), Random(f"{self._schedule.seed} tuples")
        story, seed = ["tuple by tuple"], 0
        if faults.strikes(OTHER_ORDER):
            seed = self._schedule.seed
            story.append("tuples of different tasks come in another order")
        if faults.strikes(OTHER_TASKS):
            topology = with_other_tasks(topology, faults.drawn(OTHER_TASKS))
            story.append(described_tasks(topology))
        options = RunOptions(
            max_spout_pending=draw.choice([1, 2, 4]),
            commit_group_max=draw.choice([1, 3, 8]),
            last_txid=self._batches,
            tells_spout=False,
        )
        try:
            with LocalCluster(seed=seed) as cluster:
                run = cluster.submit(topology, options=options)
                run.run_until_idle()
                kept, error = Kept(run.snapshot().states, letters_of(run.dead_letters())), ""
        except TransactionError as raised:
            kept, error = None, said_by(raised)
        story.append(f"the run ends: {error or 'done'}")
        return Played(kept, error, tuple(faults.struck), tuple(story))
