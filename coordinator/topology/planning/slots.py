"""Puts several tasks of a stage into one partition, where there are more tasks than can run at a time.

A *slot* is room for one task of Spark to run: a core of an executor. What Spark does for each of its tasks (sending it,
starting its worker on it, reading a shuffle, reporting) costs more than a small transaction does, so a stage gets at
most as many partitions as there are slots, and each runs its tasks one after the other. Nothing else changes: tasks
keep their ids, groupings, counts, edges and reports, so a run with other slots does and stores the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from coordinator.topology.planning.plan import Plan
from coordinator.topology.planning.stage_chain import Stage


def in_slots(plan: Plan, slot_count: int | None) -> Plan:
    """Returns the plan with at most `slot_count` partitions in each stage; None leaves one for each task (driver).

    The ackers have partitions of their own, because the job of the commit phase does not run them.
    """
    if slot_count is None:
        return plan
    stages = []
    for stage in plan.stages:
        ackers = [task for task in stage.tasks if task in plan.acker_tasks]
        others = [task for task in stage.tasks if task not in plan.acker_tasks]
        partitions = (*dealt(ackers, slot_count), *dealt(others, slot_count))
        stages.append(Stage(stage.tasks, partitions))
    return replace(plan, chain=replace(plan.chain, stages=tuple(stages)))


def dealt(tasks: Sequence[int], slot_count: int) -> Iterable[tuple[int, ...]]:
    """Returns the tasks of each partition: dealt in turn, so each gets its share of every component."""
    return (tuple(tasks[first::slot_count]) for first in range(min(slot_count, len(tasks))))
