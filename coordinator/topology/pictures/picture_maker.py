"""Makes the picture of a topology, from the topology itself or from its stored description.

The description has no class names, no fields of streams and no plan, so neither has a picture made from it. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from coordinated_bolt.components.component import MadeOfFunctions
from coordinator.topology.building.component import Component, Subscription
from coordinator.topology.building.grouping_words import grouping_in_words
from coordinator.topology.pictures.picture_texts import html_of
from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedState, TopologyPicture
from state.keys import Keys
from state.kinds.handles import DeclaredState, declared_states, key_shown
from state.printable import one_line
from state.values.state_kind import StateKind

_NAME_LIMIT = 200
_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)
_INPUT = re.compile(r"([^/:]+)/([^/:]+): (.*)", re.DOTALL)
_KINDS = ("spout", "bolt", "committer")


class PicturedGraph(Protocol):
    """The parts of a topology, of either kind, that a picture shows."""

    @property
    def topology_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def components(self) -> tuple[Component, ...]: ...
    def component(self, component_id: str) -> Component: ...


def picture_of(topology: PicturedGraph, handed_over: Iterable[tuple[str, str]] = ()) -> TopologyPicture:
    """Returns the picture of a topology, without facts from a plan.

    `handed_over` has (emitting component, receiving component) for subscriptions without a shuffle.
    """
    in_memory, keys = frozenset(handed_over), Keys(topology.topology_id)
    shard_count: int = getattr(topology, "shard_count", 1)  # a plain topology keeps no state
    return TopologyPicture(
        topology_id=topology.topology_id,
        kind=topology.kind,
        nodes=tuple(_node(component, keys, shard_count) for component in topology.components),
        edges=tuple(
            _edge(topology, component, subscription, in_memory)
            for component in topology.components
            for subscription in component.subscriptions
            if not subscription.is_of_letters
        ),
    )


def html_picture(topology: PicturedGraph) -> str:
    """Returns the picture of a topology as HTML for a notebook."""
    return html_of(picture_of(topology))


def class_name(thing: Any) -> str:
    """Returns the name of an object's class in its module; for an object made of functions, the user's line."""
    if isinstance(thing, MadeOfFunctions) and thing.made_at:
        return one_line(_FOLDERS.sub("", thing.made_at), _NAME_LIMIT)
    return one_line(type(thing).__qualname__.rpartition("<locals>.")[2], _NAME_LIMIT)


def _node(component: Component, keys: Keys, shard_count: int) -> Node:
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
        states=tuple(_state(handle, keys, shard_count) for handle in declared_states(component.spec).values()),
        note=", ".join(notes),
    )


def _edge(
    topology: PicturedGraph, component: Component, subscription: Subscription, in_memory: frozenset[tuple[str, str]]
) -> Edge:
    upstream = topology.component(subscription.upstream_id)
    return Edge(
        source=upstream.component_id,
        target=component.component_id,
        stream_id=subscription.stream_id,
        fields=upstream.streams[subscription.stream_id].fields,
        grouping=grouping_in_words(repr(subscription.grouping), _NAME_LIMIT),
        in_memory=(upstream.component_id, component.component_id) in in_memory,
    )


def _state(handle: DeclaredState, keys: Keys, shard_count: int) -> PicturedState:
    held = held_in_words(handle.kind, handle.field_type.value, handle.value_type.value)
    return PicturedState(handle.name, key_shown(handle, keys, shard_count), handle.kind.redis_type, held)


def held_in_words(kind: StateKind, field: str, value: str) -> str:
    """Returns the content of a state of this kind, such as "str -> int"; field and value are names of types."""
    match kind:
        case StateKind.HASH:
            return f"{field} -> {value}"
        case StateKind.STREAM:
            return f"entries of {value}"
        case StateKind.SORTED_SET:
            return f"{field} -> score"
        case StateKind.SET | StateKind.HYPERLOGLOG:
            return field
    return value


def picture_of_description(topology_id: str, description: str) -> TopologyPicture | None:
    """Returns the picture of a topology, None if its description, perhaps from another version, is unreadable."""
    try:
        found = json.loads(description)
        components: dict[str, Any] = found["components"]
        inputs = {name: [_input(text) for text in each["inputs"]] for name, each in components.items()}
        order = _flow_order(inputs)
        states = _states_of(topology_id, found["states"], int(found.get("shards", 1)))
        nodes = tuple(_described_node(name, components[name], states.get(name, ())) for name in order)
        edges = tuple(
            Edge(source, name, stream, (), grouping) for name in order for source, stream, grouping in inputs[name]
        )
    except (ValueError, TypeError, KeyError, AttributeError, SyntaxError):
        return None
    return TopologyPicture(topology_id, "transactional", nodes, edges) if nodes else None


def _input(text: str) -> tuple[str, str, str]:
    found = _INPUT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an input")
    return found[1], found[2], grouping_in_words(found[3])


def _flow_order(inputs: Mapping[str, list[tuple[str, str, str]]]) -> list[str]:
    """Returns the components, each after the components to which it subscribes, otherwise ordered by name."""
    order: list[str] = []
    left = sorted(inputs)
    while left:
        ready = next((name for name in left if all(source in order for source, _, _ in inputs[name])), None)
        if ready is None:
            raise ValueError(f"components {left} have no order")
        order.append(ready)
        left.remove(ready)
    return order


def _described_node(name: str, component: Mapping[str, Any], states: tuple[PicturedState, ...]) -> Node:
    kind = str(component["kind"])
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a kind of component")
    return Node(name, kind, "", int(component["tasks"]), states)


def _states_of(
    topology_id: str, states: Mapping[str, Mapping[str, Any]], shard_count: int
) -> dict[str, tuple[PicturedState, ...]]:
    found: dict[str, tuple[PicturedState, ...]] = {}
    for name, state in sorted(states.items()):
        kind, value, field = StateKind(state["kind"]), str(state["value"]), str(state["field"])
        part = ":…" if "parts" in state else ""
        held = held_in_words(kind, field, value)
        key = Keys(topology_id).shown(name, shard_count)
        shown = PicturedState(f"{name}{part}", f"{key}{part}", kind.redis_type, held)
        found[str(state["owner"])] = (*found.get(str(state["owner"]), ()), shown)
    return found
