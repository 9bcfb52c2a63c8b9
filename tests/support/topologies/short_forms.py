"""Streams over small batches, and what they leave on LocalCluster, whatever the tasks and the groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.task_counts import with_tasks
from coordinator import FixedBatchesSpout, LocalCluster, RunOptions, Topology, TransactionalRun
from coordinator.fluent.stream import Stream, stream

SCHEDULES = ((1, 1), (2, 3), (3, 64))
"""Numbers of tasks, and of transactions in a group."""


def rows(fields: str, *batches: Sequence[Sequence[Any]]) -> Stream:
    """A stream of these batches, with the fields named in a text."""
    return stream(FixedBatchesSpout(batches, fields.split()))


def finished(topology: Topology, tasks: int = 1, group: int = 64) -> TransactionalRun:
    """A run that has committed everything."""
    with LocalCluster(seed=tasks) as cluster:
        run = cluster.submit(
            with_tasks(topology, tasks), options=RunOptions(max_spout_pending=8, commit_group_max=group)
        )
        run.run_until_idle()
        assert run.is_done
    return run


def kept(topology: Topology, *states: str) -> Any:
    """What one state holds, or several do, at the end; the same for all schedules."""
    found = []
    for tasks, group in SCHEDULES:
        with LocalCluster(seed=tasks) as cluster:
            options = RunOptions(max_spout_pending=8, commit_group_max=group)
            run = cluster.submit(with_tasks(topology, tasks), options=options)
            run.run_until_idle()
            assert run.is_done
            found.append({name: run.state(name) for name in states})
    assert all(each == found[0] for each in found), found
    return found[0][states[0]] if len(states) == 1 else found[0]
