"""Makes the picture of a topology as it was built: components, subscriptions and states. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinated_bolt.streams.groupings import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from coordinator.building.letter_streams import is_of_letters
from coordinator.building.topology import Component, ComponentGraph, Subscription, Topology
from coordinator.pictures.topology_picture import Edge, Node, PicturedState, TopologyPicture
from state.keys import Keys
from state.kinds.handles import DeclaredState, declared_states, key_shown
from state.printable import one_line
from state.values.state_kind import StateKind

GROUPING_WORDS: dict[type[Grouping], str] = {
    AllGrouping: "all",
    DirectGrouping: "direct",
    GlobalGrouping: "global",
    LocalOrShuffleGrouping: "local or shuffle",
    NoneGrouping: "none",
    ShuffleGrouping: "shuffle",
}
_NAME_LIMIT = 200


def picture_of(topology: ComponentGraph, handed_over: Iterable[tuple[str, str]] = ()) -> TopologyPicture:
    """Returns the picture of a topology, without what only a plan knows.

    Args:
        topology: checked.
        handed_over: (emitting component, receiving component) of the subscriptions that need no shuffle.
    """
    in_memory = frozenset(handed_over)
    return TopologyPicture(
        topology_id=topology.topology_id,
        kind="transactional" if isinstance(topology, Topology) else "plain",
        nodes=tuple(_node(component, Keys(topology.topology_id)) for component in topology.components),
        edges=tuple(
            _edge(topology, component, subscription, in_memory)
            for component in topology.components
            for subscription in component.subscriptions
            if not is_of_letters(subscription)
        ),
    )


def grouping_label(grouping: Grouping) -> str:
    """Returns how a grouping is called in a picture: "shuffle", "fields word"; of a user's own, its repr."""
    match grouping:
        case FieldsGrouping(names):
            return f"fields {', '.join(names)}"
        case PartialKeyGrouping(names):
            return f"partial key {', '.join(names)}"
    return GROUPING_WORDS.get(type(grouping)) or one_line(repr(grouping), _NAME_LIMIT)


def class_name(thing: Any) -> str:
    """Returns the name of an object's class, as its module calls it."""
    return one_line(type(thing).__qualname__.rpartition("<locals>.")[2], _NAME_LIMIT)


def _node(component: Component, keys: Keys) -> Node:
    notes = []
    if component.master_id is not None:
        notes.append(f"sub-topology {component.master_id}")
    if component.has_external_effects:
        notes.append("external effects")
    return Node(
        component_id=component.component_id,
        kind=component.kind.value,
        class_name=class_name(component.spec),
        task_count=component.task_count,
        states=tuple(_state(handle, keys) for handle in declared_states(type(component.spec)).values()),
        note=", ".join(notes),
    )


def _edge(
    topology: ComponentGraph, component: Component, subscription: Subscription, in_memory: frozenset[tuple[str, str]]
) -> Edge:
    upstream = topology.component(subscription.upstream_id)
    return Edge(
        source=upstream.component_id,
        target=component.component_id,
        stream_id=subscription.stream_id,
        fields=upstream.streams[subscription.stream_id].fields,
        grouping=grouping_label(subscription.grouping),
        in_memory=(upstream.component_id, component.component_id) in in_memory,
    )


def _state(handle: DeclaredState, keys: Keys) -> PicturedState:
    return PicturedState(handle.name, key_shown(handle, keys), handle.kind.redis_type, _holds(handle))


def _holds(handle: DeclaredState) -> str:
    match handle.kind:
        case StateKind.HASH:
            return f"{handle.field_type.value} -> {handle.value_type.value}"
        case StateKind.SORTED_SET:
            return f"{handle.field_type.value} -> score"
        case StateKind.SET | StateKind.HYPERLOGLOG:
            return handle.field_type.value
    return handle.value_type.value
