"""The stages that a wave passes through on Spark, and how frames travel from one to the next.

A stage's tasks are spread over its partitions: one each, or several where there are more tasks than cores to run them
(see `slots`). A stage receives frames for its own tasks and for tasks of deeper stages; the latter are carried through
by one of its partitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinated_bolt.transport.edges import DRIVER


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
        driver_tasks: tasks that live in the driver and receive what the last stage sends them.
    """

    stages: tuple[Stage, ...]
    idle_tasks: frozenset[int] = frozenset()
    driver_tasks: tuple[int, ...] = ()

    def routes_into(self, stage_index: int) -> dict[int, int]:
        """Returns target -> partition of a stage, for the frames that the stage above sends into it.

        Frames for the driver are carried too. The index after the last stage stands for the driver itself, which has
        only partition 0.
        """
        if stage_index == len(self.stages):
            return dict.fromkeys((DRIVER, *self.driver_tasks), 0)
        entered = self.stages[stage_index]
        routes = entered.place_of()
        carriers = [place for place, tasks in enumerate(entered.partitions) if self.idle_tasks.isdisjoint(tasks)]
        if carriers:
            for stage in self.stages[stage_index + 1 :]:
                routes.update((task, carriers[task % len(carriers)]) for task in stage.tasks)
            routes[DRIVER] = carriers[0]
        return routes
