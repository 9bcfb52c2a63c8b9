"""How many tasks a component has that is given no parallelism: the planner's choice, which is one.

One task is the fast path wherever waves are dealt by batch: every core emits some of the batches, or runs all tasks of
all components on them (`coordinator.engines.waves.shares`), and each further task only costs. It is also the one choice
that cannot change a result. With several tasks the tuples of a batch arrive in another order, and a bolt that hears by
shuffle sees a part of the batch, so a number that followed the machine would make what is stored depend on the machine.
Therefore the choice follows from nothing outside the topology: no slots, no sizes. Nothing has to be looked up and
stored, and a run on another machine continues what this one began.

What one task does not spread over the cores is left to an explicit number, since only the author knows that tuples may
be divided: reading the partitions of a spout or the rows of a DataFrame, and what committers do that read state, whose
commit phase is not dealt. `txbatch plan` says so where the topology shows it; a read that is not prefetched is seen
only when it happens.
"""

from __future__ import annotations

from coordinator.spouts.row_spout import RowSpout
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.topology import ComponentGraph, Topology
from state.kinds.handles import bound_states

PLANNED_TASKS = 1


def planned(topology: ComponentGraph) -> str:
    """Returns what the planner chose, as a phrase; "" if every component was given a number."""
    chosen = [component.component_id for component in topology.components if component.is_planned]
    if not chosen:
        return ""
    return f"one task of {'each component' if len(chosen) == len(topology.components) else ', '.join(chosen)}"


def said(topology: ComponentGraph) -> str:
    """Returns what a run adds to the line that counts its tasks; "" if every component was given a number."""
    return f": {chosen}, as planned" if (chosen := planned(topology)) else ""


def undealt(topology: Topology) -> str:
    """Returns why several tasks of the spout may be faster than the planner's one, as far as a topology shows it."""
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
