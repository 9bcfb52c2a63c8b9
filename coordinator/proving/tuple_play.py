"""Plays a schedule tuple by tuple, on a `LocalCluster`; `stage_play` plays the others, on the stages of Spark."""

from __future__ import annotations

from random import Random

from coordinator.proving.quiet_run import Kept, letters_of
from coordinator.proving.schedule import OTHER_ORDER, OTHER_TASKS, Played, Schedule
from coordinator.proving.subject import described_tasks, with_other_tasks
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.errors import TransactionError


def play_by_tuples(
    topology: Topology, schedule: Schedule, last_txid: int | None, *, keeps_order: bool = True
) -> Played:
    """Plays a schedule on a `LocalCluster`, up to a transaction or the end; tuples may come in another order."""
    faults, draw = schedule.plan(), Random(f"{schedule.seed} tuples")
    story, seed = ["tuple by tuple"], 0
    if faults.strikes(OTHER_ORDER):
        seed = schedule.seed
        story.append("tuples of different tasks come in another order")
    if faults.strikes(OTHER_TASKS):
        topology = with_other_tasks(topology, faults.drawn(OTHER_TASKS))
        story.append(described_tasks(topology))
    options = RunOptions(
        max_spout_pending=draw.choice([1, 2, 4]),
        commit_group_max=draw.choice([1, 3, 8]),
        last_txid=last_txid,
        notifies_spout=False,
    )
    try:
        with LocalCluster(seed=seed, keeps_order=keeps_order) as cluster:
            run = cluster.submit(topology, options=options)
            run.run_until_idle()
            kept, error = Kept(run.snapshot().states, letters_of(run.dead_letters())), None
    except TransactionError as raised:
        kept, error = None, raised
    story.append(f"the run ends: {'done' if error is None else type(error).__name__}")
    return Played(kept, error, tuple(faults.struck), tuple(story))
