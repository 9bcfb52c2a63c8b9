"""From a plain topology to its tasks, each wired to its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from coordinated_bolt import ACKER_COMPONENT, TaskWiring
from coordinator.plain_topology import PlainTopology
from coordinator.task_wirings import PickleSpec, make_wirings, number_tasks


@dataclass(frozen=True, slots=True)
class PlainPlan:
    """Everything an engine needs to run a plain topology.

    Attributes:
        topology_id: the topology.
        wirings: task id -> wiring, of all tasks but the ackers.
        acker_tasks: task ids of the ackers; none when nothing is tracked.
        spout_tasks: task ids of all spouts.
        message_timeout_s: see `PlainTopology`.
        max_spout_pending: see `PlainTopology`.
    """

    topology_id: str
    wirings: dict[int, TaskWiring]
    acker_tasks: tuple[int, ...]
    spout_tasks: tuple[int, ...]
    message_timeout_s: float | None
    max_spout_pending: int


def make_plain_plan(topology: PlainTopology, pickle_spec: PickleSpec) -> PlainPlan:
    """Plans a plain topology.

    Raises:
        TopologyError: from `pickle_spec`.
    """
    tasks_of = number_tasks(topology)
    return PlainPlan(
        topology_id=topology.topology_id,
        wirings=make_wirings(topology, tasks_of, pickle_spec),
        acker_tasks=tasks_of[ACKER_COMPONENT],
        spout_tasks=tuple(task for spout in topology.spouts for task in tasks_of[spout.component_id]),
        message_timeout_s=topology.message_timeout_s,
        max_spout_pending=topology.max_spout_pending,
    )
