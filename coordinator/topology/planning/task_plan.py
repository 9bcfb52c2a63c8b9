"""The parts that the plans of both kinds of topology have, and how they are made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from coordinated_bolt.wiring import TaskWiring
from coordinator.topology.building.topology import ComponentGraph
from coordinator.topology.planning.chaining import Chain
from coordinator.topology.planning.stage_chain import Stage, StageChain


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TaskPlan:
    """The tasks of a topology: wired to their neighbours, and arranged in stages.

    Attributes:
        topology_id: names the topology.
        chain: the stages, in order.
        wirings: task id -> wiring, of all tasks but the ackers.
        acker_tasks: task ids of the ackers.
        chains: the components that are chained, in flow order; those of one chain together.
    """

    topology_id: str
    chain: StageChain
    wirings: dict[int, TaskWiring]
    acker_tasks: tuple[int, ...]
    chains: tuple[Chain, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the chain."""
        return self.chain.stages

    def chained_to(self, head_task: int) -> tuple[int, ...]:
        """Returns the tasks that run after a task in its partition, in their order."""
        head = self.wirings[head_task]
        chain = next((chain for chain in self.chains if chain[0] == head.component_id), ())
        return tuple(head.tasks_of[component_id][head.task_index] for component_id in chain[1:])


def levels_of(
    topology: ComponentGraph, chains: Sequence[Chain], committing: Collection[str] = frozenset()
) -> dict[str, int]:
    """Returns the length of each component's longest path within its own phase; the members of a chain share theirs.

    Args:
        topology: checked, its components in flow order.
        chains: of the topology; a component in none is its own.
        committing: component ids of the commit phase, if there is one.
    """
    head_of = {component_id: chain[0] for chain in chains for component_id in chain}
    levels: dict[str, int] = {}
    for component in topology.components:
        head = head_of.get(component.component_id)
        if head in levels:
            levels[component.component_id] = levels[head]
            continue
        own_phase = component.component_id in committing
        above = [levels[s.upstream_id] for s in component.subscriptions if (s.upstream_id in committing) == own_phase]
        levels[component.component_id] = max(above, default=-1) + 1
    return levels


def tasks_by_level(
    chains: Sequence[Chain], levels: Mapping[str, int], tasks_of: Mapping[str, tuple[int, ...]]
) -> dict[int, list[int]]:
    """Returns level -> the tasks that have partitions there: those of all components but the ones chained to a head.

    Args:
        chains: of the topology.
        levels: component id -> level, in flow order.
        tasks_of: component id -> task ids.
    """
    chained = {component_id for chain in chains for component_id in chain[1:]}
    found: dict[int, list[int]] = {}
    for component_id, level in levels.items():
        if component_id not in chained:
            found.setdefault(level, []).extend(tasks_of[component_id])
    return found
