"""Topologies that can be proved, and the numbers of tasks they are played with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from coordinator.plain.plain_topology import PlainTopology
from coordinator.spouts.row_spout import RowSpout
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import described
from state.errors import TopologyError

TASKS = (1, 2, 3)
_ELSEWHERE = {
    "coordinator.sources.kafka": "reads Kafka, which a proof would have to read again and again",
    "coordinator.sources.redis_streams": "reads Redis Streams, which a proof would have to read again and again",
}
PROVE_INSTEAD = "prove the same bolts over sample files or a FixedBatchesSpout"


def provable(given: Topology | PlainTopology | Callable[[], Topology | PlainTopology]) -> Topology:
    """Returns the topology; calls the factory if one is given.

    Raises:
        TopologyError: the topology cannot be proved; the message gives the reason and the remedy.
    """
    topology: object = given() if callable(given) else given
    if isinstance(topology, PlainTopology):
        raise TopologyError(
            f"topology {topology.topology_id!r} is a plain one: it has no state that schedules could be compared by; "
            "test it on a LocalCluster"
        )
    if not isinstance(topology, Topology):
        raise TopologyError(f"prove got {described(topology)}; give the result of a builder's build(), or a factory")
    spout = topology.spout
    if isinstance(spout.spec, RowSpout):
        raise TopologyError(
            f"component {spout.component_id!r} reads DataFrames, which only Spark can read; {PROVE_INSTEAD}"
        )
    for room, why in _ELSEWHERE.items():
        if type(spout.spec).__module__.startswith(room):
            raise TopologyError(f"component {spout.component_id!r} {why}; {PROVE_INSTEAD}")
    for component in topology.components:
        if component.has_external_effects:
            raise TopologyError(
                f"committer {component.component_id!r} has external effects, and a proof would repeat them; give a "
                "factory that leaves them out"
            )
    if not topology.states:
        raise TopologyError(f"topology {topology.topology_id!r} declares no state: there is nothing to compare")
    return topology


def with_other_tasks(topology: Topology, random: Random) -> Topology:
    """Returns the topology with one to three tasks of each component that was declared with several."""
    components = []
    for component in topology.components:
        count = random.choice(TASKS) if component.task_count > 1 else component.task_count
        components.append(replace(component, task_count=count, parallelism=count))
    return replace(topology, components=tuple(components))


def described_tasks(topology: Topology) -> str:
    """Returns the numbers of tasks, for a story."""
    return "there are other numbers of tasks: " + ", ".join(
        f"{component.task_count} of {component.component_id}" for component in topology.components
    )
