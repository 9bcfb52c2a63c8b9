"""The planner's number of tasks for a component without a parallelism: one.

One task is the fast path wherever waves are divided by batch: every core emits some of the batches, or runs all tasks
of all components on them (`coordinator.engines.waves.shares`), and each further task only adds cost. It is also the one
choice that cannot change a result. With several tasks the tuples of a batch arrive in another order, and a bolt with a
shuffle grouping sees a part of the batch, so a number derived from the machine would make the stored results depend on
it. Therefore the choice depends on nothing outside the topology: no slots, no sizes. Nothing has to be looked up and
stored, and a run on another machine can continue this one.

Some work is not spread over the cores by one task: reading the partitions of a spout or the rows of a DataFrame, and
committers that read state, whose commit phase is not divided. There only the author knows that tuples may be divided,
and gives a number. `txbatch plan` points this out where the topology shows it; a read that is not prefetched shows only
at run time.
"""

from __future__ import annotations

from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import ComponentGraph, Topology
from state.kinds.handles import bound_states

PLANNED_TASKS = 1


def planned(topology: ComponentGraph) -> str:
    """Returns the planner's choices, as a phrase; "" if every component was given a number."""
    chosen = [component.component_id for component in topology.components if component.is_planned]
    if not chosen:
        return ""
    return f"one task of {'each component' if len(chosen) == len(topology.components) else ', '.join(chosen)}"


def said(topology: ComponentGraph) -> str:
    """Returns the addition to a run's line about its tasks; "" if every component was given a number."""
    return f": {chosen}, as planned" if (chosen := planned(topology)) else ""


def task_advice(topology: Topology) -> str:
    """Returns why several spout tasks may be faster than the planner's one, as far as the topology shows it."""
    if not topology.spout.is_planned:
        return ""
    if SpoutKind(topology.spout.spec).has_partitions:
        return f"one task reads all partitions of {topology.spout.component_id}"
    if isinstance(topology.spout.spec, RowSpout):
        return f"one task receives all rows of {topology.spout.component_id}"
    reading = [
        component.component_id
        for component in topology.components
        if any(handle.prefetched_by for handle in bound_states(component.spec).values())
    ]
    return f"{', '.join(reading)} read{'s' if len(reading) == 1 else ''} state" if reading else ""
