"""The stages that a wave passes through on Spark, how frames travel from one to the next, and the tasks in them.

A stage's tasks are spread over its partitions: one each, or several if there are more tasks than slots. A *slot* is
room for one Spark task: a core of an executor. Spark's overhead per task (sending it, starting its worker, reading a
shuffle, reporting) costs more than a small transaction, so a stage gets at most as many partitions as there are slots,
and each runs its tasks one after the other. Nothing else changes: tasks keep their ids, groupings, counts, edges and
reports, so the number of slots changes no result.

A stage receives frames for its own tasks and for tasks of deeper stages; one of its partitions carries the latter
through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from coordinated_bolt.transport.edges import DRIVER
from coordinated_bolt.wiring import TaskWiring
from coordinator.topology.planning.chaining import Chain


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the chain.

    Attributes:
        tasks: task ids, in order.
        partitions: the tasks of each partition; by default one each.
    """

    tasks: tuple[int, ...]
    partitions: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.partitions:
            object.__setattr__(self, "partitions", tuple((task,) for task in self.tasks))

    def place_of(self) -> dict[int, int]:
        """Returns task -> its partition."""
        return {task: place for place, tasks in enumerate(self.partitions) for task in tasks}


@dataclass(frozen=True, slots=True)
class StageChain:
    """All stages of a plan, of either kind of topology.

    Attributes:
        stages: from the first to the last.
        idle_tasks: tasks that not every job of a wave runs, so they must not carry frames for others.
    """

    stages: tuple[Stage, ...]
    idle_tasks: frozenset[int] = frozenset()

    def routes_into(self, stage_index: int) -> dict[int, int]:
        """Returns target -> partition of a stage, for the frames from the stage above.

        Frames for the driver are carried too. The index after the last stage stands for the driver itself, which has
        only partition 0.
        """
        if stage_index == len(self.stages):
            return {DRIVER: 0}
        entered = self.stages[stage_index]
        routes = entered.place_of()
        carriers = [place for place, tasks in enumerate(entered.partitions) if self.idle_tasks.isdisjoint(tasks)]
        if carriers:
            for stage in self.stages[stage_index + 1 :]:
                routes.update((task, carriers[task % len(carriers)]) for task in stage.tasks)
            routes[DRIVER] = carriers[0]
        return routes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TaskPlan:
    """The tasks of a topology, wired to their neighbours and arranged in stages.

    Attributes:
        topology_id: names the topology.
        chain: the stages, in order.
        wirings: task id -> wiring, of all tasks except ackers.
        acker_tasks: task ids of the ackers.
        chains: the chains, in flow order.
        slots: how many Spark tasks run at a time; None if unknown.
    """

    topology_id: str
    chain: StageChain
    wirings: dict[int, TaskWiring]
    acker_tasks: tuple[int, ...]
    chains: tuple[Chain, ...] = ()
    slots: int | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the chain."""
        return self.chain.stages

    def chained_to(self, head_task: int) -> tuple[int, ...]:
        """Returns the tasks that run after a head task in its partition, in order."""
        head = self.wirings[head_task]
        chain = next((chain for chain in self.chains if chain[0] == head.component_id), ())
        return tuple(head.tasks_of[component_id][head.task_index] for component_id in chain[1:])

    def in_slots(self, slot_count: int | None) -> Self:
        """Returns the plan with at most `slot_count` partitions in each stage; None keeps one per task (driver).

        Ackers get separate partitions, because the job of the commit phase does not run them.
        """
        if slot_count is None:
            return self
        stages = []
        for stage in self.stages:
            ackers = [task for task in stage.tasks if task in self.acker_tasks]
            others = [task for task in stage.tasks if task not in self.acker_tasks]
            stages.append(Stage(stage.tasks, (*_dealt(ackers, slot_count), *_dealt(others, slot_count))))
        return replace(self, chain=replace(self.chain, stages=tuple(stages)), slots=slot_count)


def _dealt(tasks: Sequence[int], slot_count: int) -> tuple[tuple[int, ...], ...]:
    """Returns the tasks of each partition, assigned round robin, so each gets its share of every component."""
    return tuple(tuple(tasks[first::slot_count]) for first in range(min(slot_count, len(tasks))))
