"""Plans a plain topology: its tasks, each wired to its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinated_bolt.wiring import TaskWiring
from coordinator.building.plain_topology import PlainTopology
from coordinator.planning.placement import workers
from coordinator.planning.task_wirings import PickleSpec, executors_of, make_wirings, number_tasks
from state.errors import TopologyError


@dataclass(frozen=True, slots=True)
class PlainPlan:
    """Everything an engine needs to run a plain topology.

    Attributes:
        topology_id: names the topology.
        wirings: task id -> wiring, of all tasks but the ackers.
        acker_tasks: task ids of the ackers; empty if nothing is tracked.
        spout_tasks: task ids of all spouts.
        tick_periods_s: bolt task id -> seconds between its tick tuples, for tasks that asked for them.
        message_timeout_s: see `PlainTopology`.
        max_spout_pending: see `PlainTopology`.
    """

    topology_id: str
    wirings: dict[int, TaskWiring]
    acker_tasks: tuple[int, ...]
    spout_tasks: tuple[int, ...]
    tick_periods_s: dict[int, float]
    message_timeout_s: float | None
    max_spout_pending: int


def make_plain_plan(topology: PlainTopology, pickle_spec: PickleSpec, *, worker_count: int = 0) -> PlainPlan:
    """Plans a plain topology.

    Args:
        topology: a checked topology.
        pickle_spec: pickles what is shipped.
        worker_count: see `make_plan`.

    Raises:
        TopologyError: `pickle_spec` refused a component, or the period of a bolt's tick tuples is invalid.
    """
    tasks_of = number_tasks(topology)
    worker_of = workers(executors_of(topology, tasks_of), worker_count)
    wirings = make_wirings(topology, tasks_of, pickle_spec, worker_of)
    spout_tasks = tuple(task for spout in topology.spouts for task in tasks_of[spout.component_id])
    return PlainPlan(
        topology_id=topology.topology_id,
        wirings=wirings,
        acker_tasks=tasks_of[ACKER_COMPONENT],
        spout_tasks=spout_tasks,
        tick_periods_s={
            task: _checked_period(wiring)
            for task, wiring in wirings.items()
            if task not in spout_tasks and wiring.coordination is None and TICK_TUPLE_FREQ_SECS in wiring.conf
        },
        message_timeout_s=topology.message_timeout_s,
        max_spout_pending=topology.max_spout_pending,
    )


def _checked_period(wiring: TaskWiring) -> float:
    period = wiring.conf[TICK_TUPLE_FREQ_SECS]
    if isinstance(period, bool) or not isinstance(period, (int, float)) or not 0 < period < float("inf"):
        raise TopologyError(
            f"component {wiring.component_id!r}: {TICK_TUPLE_FREQ_SECS!r} is {period!r}; give a number of seconds "
            "above 0"
        )
    return period
