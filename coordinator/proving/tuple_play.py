"""Plays a schedule tuple by tuple, on a `LocalCluster`: tuples of different tasks arrive in any order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from coordinated_bolt.transport.frames import Frame
from coordinator.engines.local.cluster import LocalCluster
from coordinator.proving.quiet_run import Kept, letters_of
from coordinator.proving.schedule import OTHER_ORDER, OTHER_TASKS, Played, Schedule
from coordinator.proving.subject import with_other_tasks
from coordinator.topology.building.topology import Topology
from coordinator.transactional.options import RunOptions
from state.errors import ReplayLimitError, TransactionError
from state.printable import said_by

STARTS_WITH_FAULTS = 6
"""How many runs may go wrong by chance."""


class TuplePlay:
    """One schedule.

    Args:
        topology: what is run.
        schedule: what is played.
        batches: the last transaction.
    """

    def __init__(self, topology: Topology, schedule: Schedule, batches: int) -> None:
        self._topology, self._schedule, self._batches = topology, schedule, batches
        self._faults = schedule.plan()
        self._random = Random(f"{schedule.seed} tuples")
        self._story: list[str] = []

    def play(self) -> Played:
        """Plays it to its end."""
        is_other = self._faults.strikes(OTHER_ORDER)
        self._story.append("tuple by tuple" + (", those of different tasks in another order" if is_other else ""))
        try:
            with LocalCluster(seed=self._schedule.seed if is_other else 0) as cluster:
                kept, error = self._runs(cluster), ""
        except TransactionError as raised:
            kept, error = None, said_by(raised)
            self._story.append(f"the run ends with an error: {type(raised).__name__}")
        return Played(kept, error, tuple(self._faults.struck), tuple(self._story))

    def _runs(self, cluster: LocalCluster) -> Kept:
        for number in range(1, 10 * STARTS_WITH_FAULTS):
            if number > STARTS_WITH_FAULTS and self._schedule.exactly is None:
                self._faults.end()
            kept = self._run(cluster, f"driver {number}")
            if kept is not None:
                return kept
        raise AssertionError("unreachable: without faults a run ends")

    def _run(self, cluster: LocalCluster, name: str) -> Kept | None:
        """Lets one driver run; returns what is left if it was not killed."""
        faults, topology = self._faults, self._topology
        draw = Random(self._random.getrandbits(64))
        told = f"{name} starts"
        if faults.strikes(OTHER_TASKS):
            topology = with_other_tasks(topology, faults.drawn(OTHER_TASKS))
            told += ", with " + ", ".join(f"{c.task_count} of {c.component_id}" for c in topology.components)
        self._story.append(told)
        options = RunOptions(
            max_spout_pending=draw.choice([1, 2, 4]),
            commit_group_max=draw.choice([1, 3, 8]),
            last_txid=self._batches,
            tells_spout=False,
        )
        committed = 0
        try:
            run = cluster.submit(topology, options=options, frame_fault=self._fault)
            while run.tick():
                if run.statistics.last_txid > committed:
                    committed = run.statistics.last_txid
                    self._story.append(f"{name} has committed up to {committed}")
                if faults.strikes("driver.is_killed"):
                    self._story.append(f"{name} is killed")
                    run.close()
                    return None
        except ReplayLimitError:
            self._story.append(f"{name} gives up: a transaction has failed too often")
            return None
        self._story.append(f"{name} is done")
        return Kept(run.snapshot().states, letters_of(run.dead_letters()))

    def _fault(self, frame: Frame) -> Sequence[Frame]:
        for fault, what, arriving in (("frame.is_lost", "lost", []), ("frame.is_doubled", "doubled", [frame, frame])):
            if self._faults.strikes(fault):
                self._story.append(f"a {frame.kind.name.lower()} frame of {frame.attempt.txid} is {what}")
                return arriving
        return [frame]
