"""Gives the components of a topology another number of tasks than the planner chose."""

from __future__ import annotations

from dataclasses import replace

from coordinated_bolt.streams.groupings import GlobalGrouping
from coordinator.topology.building.topology import Topology


def with_tasks(topology: Topology, tasks: int) -> Topology:
    """Returns the topology with `tasks` tasks of each component, except those with a number or a global grouping."""
    return replace(
        topology,
        components=tuple(
            replace(component, task_count=tasks, parallelism=tasks, is_planned=False)
            if component.is_planned and all(s.grouping != GlobalGrouping() for s in component.subscriptions)
            else component
            for component in topology.components
        ),
    )
