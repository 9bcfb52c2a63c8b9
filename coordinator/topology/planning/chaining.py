"""Decides which components run as one: in one Spark task, handing tuples over in memory.

A *chain* is a head and the components chained to it, all with as many tasks as the head: task k of each runs where task
k of the head runs. A component is chained if all its input is emitted inside one chain and may stay with the emitter:

* it has as many tasks as the component upstream, and subscribes by shuffle, none or local-or-shuffle; with one task
  each, by any grouping, since there is no choice;
* this is true of all its subscriptions, and all lead into the same chain;
* it belongs to the processing phase, and neither it nor a component upstream has disabled chaining.

Therefore tuples from outside enter a chain only at its head, so chains form no cycle. The commit phase has no chains:
its components run in another job, or on the shuffled frames of this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from coordinated_bolt.streams.groupings import LocalOrShuffleGrouping, NoneGrouping, ShuffleGrouping
from coordinated_bolt.streams.routing import OutputStream, Subscriber
from coordinated_bolt.wiring import TaskWiring
from coordinator.topology.building.component import Component
from coordinator.topology.building.topology import ComponentGraph

Chain = tuple[str, ...]
"""Component ids in flow order, the head first; many chains have only a head."""
_LEAVE_IT_OPEN = (ShuffleGrouping(), NoneGrouping(), LocalOrShuffleGrouping())
"""Groupings that let txbatch choose the receiving task; a user's subclass is not equal to any of these."""
HandOvers = frozenset[tuple[str, str]]
"""(emitting component, receiving component) of all subscriptions inside chains."""


def chains_of(topology: ComponentGraph, left_out: Collection[str]) -> list[Chain]:
    """Returns the chains of a topology; each component that is not left out is in exactly one (driver)."""
    members: dict[str, list[str]] = {}
    head_of: dict[str, str] = {}
    for component in topology.components:
        if component.component_id in left_out:
            continue
        head = _chain_to_join(topology, component, head_of) or component.component_id
        head_of[component.component_id] = head
        members.setdefault(head, []).append(component.component_id)
    return [tuple(chain) for chain in members.values()]


def unchained(topology: ComponentGraph, left_out: Collection[str]) -> list[Chain]:
    """Returns a separate chain for each component that is not left out."""
    return [(c.component_id,) for c in topology.components if c.component_id not in left_out]


def hand_overs(topology: ComponentGraph, chains: Sequence[Chain]) -> HandOvers:
    """Returns which components hand tuples over to which."""
    head_of = {component_id: chain[0] for chain in chains for component_id in chain}
    return frozenset(
        (subscription.upstream_id, component.component_id)
        for component in topology.components
        for subscription in component.subscriptions
        if component.component_id in head_of
        and head_of.get(subscription.upstream_id) == head_of[component.component_id]
    )


def chained_wirings(wirings: Mapping[int, TaskWiring], hand_overs: HandOvers) -> dict[int, TaskWiring]:
    """Returns the wirings; within a chain each task is wired only to its counterparts of the same index.

    Tasks outside the chain, upstream or downstream, are wired as in a topology without chains.
    """
    return {task: _chained(wiring, wirings, hand_overs) for task, wiring in wirings.items()}


def _chained(wiring: TaskWiring, wirings: Mapping[int, TaskWiring], hand_overs: HandOvers) -> TaskWiring:
    own_id, own_index = wiring.component_id, wiring.task_index
    if not any(own_id in pair for pair in hand_overs):
        return wiring

    def is_counterpart(task: int) -> bool:
        return wirings[task].task_index == own_index

    def hands_to(component_id: str) -> bool:
        return (own_id, component_id) in hand_overs

    def subscribed(subscriber: Subscriber) -> Subscriber:
        if wiring.task_count == 1 or not hands_to(subscriber.component_id):
            return subscriber
        return replace(subscriber, grouping=LocalOrShuffleGrouping(local_positions=(own_index,)))

    def output(stream: OutputStream) -> OutputStream:
        return replace(stream, subscribers=tuple(map(subscribed, stream.subscribers)))

    chained = tuple(t for t in wiring.targets if hands_to(wirings[t].component_id) and is_counterpart(t))
    framed = tuple(t for t in wiring.targets if not hands_to(wirings[t].component_id))
    return replace(
        wiring,
        upstream={
            task: upstream
            for task, upstream in wiring.upstream.items()
            if (upstream.component_id, own_id) not in hand_overs or is_counterpart(task)
        },
        streams={stream_id: output(stream) for stream_id, stream in wiring.streams.items()},
        targets=tuple(sorted((*framed, *chained))),
        chained_targets=chained,
    )


def _chain_to_join(topology: ComponentGraph, component: Component, head_of: dict[str, str]) -> str | None:
    """Returns the head of the chain that a component joins, None if it begins a chain."""
    heads = {head_of.get(subscription.upstream_id) for subscription in component.subscriptions}
    if len(heads) != 1 or not component.may_chain:
        return None
    for subscription in component.subscriptions:
        upstream = topology.component(subscription.upstream_id)
        if not upstream.may_chain or upstream.task_count != component.task_count:
            return None
        if component.task_count > 1 and subscription.grouping not in _LEAVE_IT_OPEN:
            return None
    return heads.pop()


def levels_of(
    topology: ComponentGraph, chains: Sequence[Chain], committing: Collection[str] = frozenset()
) -> dict[str, int]:
    """Returns the length of each component's longest path within its phase; all members of a chain have the same.

    A component outside chains counts alone; `committing` has the components of the commit phase.
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
    """Returns level -> tasks with partitions there: of all components except those chained to a head."""
    chained = {component_id for chain in chains for component_id in chain[1:]}
    found: dict[int, list[int]] = {}
    for component_id, level in levels.items():
        if component_id not in chained:
            found.setdefault(level, []).extend(tasks_of[component_id])
    return found
