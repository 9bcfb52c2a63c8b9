"""Plans a plain topology: its tasks, wired to their neighbours, in the chain of stages that each wave passes through.

A wave holds the tuples that the spouts, which live in the driver, have emitted since the last wave. A stage holds the
bolts of one level, which is the length of the longest path from a spout. A chain of bolts counts as one (see
`chaining`): its head has the partitions, and the bolts chained to it run there. Bolts report on trees to the driver,
which decides on them when the wave has ended: it only compares two columns, while a stage for this would take as long
as all others together. So on Spark the number of ackers makes no difference, unless it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinated_bolt.wiring import TaskWiring
from coordinator.plain.plain_topology import PlainTopology
from coordinator.topology.planning.chaining import (
    chained_wirings,
    chains_of,
    hand_overs,
    levels_of,
    tasks_by_level,
    unchained,
)
from coordinator.topology.planning.stages import Stage, StageChain, TaskPlan
from coordinator.topology.planning.task_wirings import PickleSpec, executors_of, make_wirings, number_tasks, workers
from state.errors import TopologyError
from state.values.whole import is_number


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlainPlan(TaskPlan):
    """Everything that an engine needs to run a plain topology; shipped once, and read by every stage.

    Attributes:
        chain: the stages: the bolts, level by level.
        chains: the chains of bolts.
        acker_tasks: task ids of the ackers; empty if nothing is tracked.
        tick_periods_s: bolt task id -> seconds between its tick tuples, for tasks that ask for them.
        message_timeout_s: see `PlainTopology`.
        max_spout_pending: see `PlainTopology`.
    """

    spout_tasks: tuple[int, ...]
    tick_periods_s: dict[int, float]
    message_timeout_s: float | None
    max_spout_pending: int

    @property
    def is_tracked(self) -> bool:
        """Whether there are ackers."""
        return bool(self.acker_tasks)


def make_plain_plan(
    topology: PlainTopology, pickle_spec: PickleSpec, *, worker_count: int = 0, is_chained: bool = True
) -> PlainPlan:
    """Plans a plain topology; see `make_plan`.

    Raises:
        TopologyError: `pickle_spec` refused a component, or the period of a bolt's tick tuples is invalid.
    """
    tasks_of = number_tasks(topology)
    worker_of = workers(executors_of(topology, tasks_of), worker_count)
    wirings = make_wirings(topology, tasks_of, pickle_spec, worker_of)
    spouts = [spout.component_id for spout in topology.spouts]
    if is_chained:
        # tasks of a sub-topology count the tuples they are sent, so they are not chained
        alone = [component.component_id for component in topology.components if component.master_id is not None]
        chains = [*chains_of(topology, {*spouts, *alone}), *((component_id,) for component_id in alone)]
    else:
        chains = unchained(topology, spouts)
    wirings = chained_wirings(wirings, hand_overs(topology, chains))
    spout_tasks = tuple(task for spout in topology.spouts for task in tasks_of[spout.component_id])
    tasks_at = tasks_by_level(chains, levels_of(topology, chains), tasks_of)
    del tasks_at[0]  # the spouts
    stages = [Stage(tuple(tasks_at[level])) for level in sorted(tasks_at)]
    return PlainPlan(
        topology_id=topology.topology_id,
        chain=StageChain(tuple(stages)),
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
        chains=tuple(chains),
    )


def _checked_period(wiring: TaskWiring) -> float:
    period = wiring.conf[TICK_TUPLE_FREQ_SECS]
    if not is_number(period) or not 0 < period < float("inf"):
        raise TopologyError(
            f"component {wiring.component_id!r}: {TICK_TUPLE_FREQ_SECS!r} is {period!r}; give a number of seconds "
            "above 0"
        )
    return period
