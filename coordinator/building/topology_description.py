"""A topology as it is remembered, so the next start can say what is different about it.

Stored as one line of JSON, for whoever looks into Redis. Most changes are allowed between runs and only said. A
state that is no longer declared, or is declared with other types, is another matter: what the store holds stays as it
was, and what is written later goes elsewhere or means something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.building.topology import Component, Topology
from state.errors import StateRefusedError
from state.handles import declared_states
from state.printable import one_line
from state.state_handle import StateHandle

Described = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TopologyChange:
    """What is different about a topology, a sentence each.

    Attributes:
        said: what is allowed.
        states: what happened to states that were written before, and has to be accepted.
    """

    said: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def described(topology: Topology) -> str:
    """The topology as text; equal texts are equal topologies."""
    states = {
        handle.name: _of_state(handle, component)
        for component in topology.components
        for handle in declared_states(type(component.spec)).values()
    }
    components = {component.component_id: _of_component(component) for component in topology.components}
    return json.dumps({"components": components, "states": states}, sort_keys=True, ensure_ascii=False)


def changes(stored: str, given: str) -> TopologyChange:
    """Compares two descriptions; one that cannot be read is all change, and says so."""
    if stored == given:
        return TopologyChange()
    try:
        before, after = json.loads(stored), json.loads(given)
        said = [*_of_kind("component", before["components"], after["components"])]
        owners = _without_owner(before["states"]), _without_owner(after["states"])
        states = [sentence for sentence in _of_kind("state", *owners) if not sentence.endswith(" is new")]
        said += [sentence for sentence in _of_kind("state", *owners) if sentence.endswith(" is new")]
        said += _moved(before["states"], after["states"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return TopologyChange((), (f"its stored description {one_line(stored, 100)!r} cannot be read",))
    return TopologyChange(tuple(said), tuple(states))


def states_of(description: str) -> set[str]:
    """The states a description names; none if it cannot be read, which `changes` tells."""
    try:
        return set(json.loads(description)["states"])
    except (ValueError, TypeError, KeyError):
        return set()


def summary(description: str) -> str:
    """A description in few words, for a reader; as it is if it cannot be read."""
    try:
        found = json.loads(description)
        parts = [f"{name}*{each['tasks']}[{each['kind']}]" for name, each in found["components"].items()]
        states = [f"{name}:{each['kind']}" for name, each in found["states"].items()]
    except (ValueError, TypeError, KeyError, AttributeError):
        return description
    return f"{', '.join(parts)}; states {', '.join(states) or 'none'}"


def check_topology(
    topology_id: str, change: TopologyChange, *, committed_txid: int, accept_state_changes: bool
) -> list[str]:
    """Decides; called once at start, before anything is taken over (driver).

    Returns:
        What is different, a sentence each.

    Raises:
        StateRefusedError: a state has gone or has other types, something was committed, and nobody has accepted it.
    """
    if change.states and committed_txid and not accept_state_changes:
        raise StateRefusedError(
            f"topology {topology_id!r} is committed up to txid {committed_txid}, and its states have changed since: "
            f"{'; '.join(change.states)}; what was written stays under its former name and types. Declare the state as "
            "it was, start over by "
            f"`txbatch drop {topology_id}`, choose another topology id, or accept it by --accept-state-changes "
            "(in Python RunOptions.accept_state_changes)"
        )
    return [*change.said, *change.states]


def _of_component(component: Component) -> dict[str, Any]:
    inputs = sorted(f"{s.upstream_id}/{s.stream_id}: {s.grouping!r}" for s in component.subscriptions)
    return {
        "kind": component.kind.value,
        "tasks": component.task_count,
        "parallelism": component.parallelism,
        "inputs": inputs,
    }


def _of_state(handle: StateHandle, component: Component) -> dict[str, Any]:
    return {
        "kind": handle.kind.value,
        "value": handle.value_type.value,
        "field": handle.field_type.value,
        "owner": component.component_id,
    }


def _of_kind(kind: str, before: Described, after: Described) -> list[str]:
    """What was added, what has gone, and what differs in which part."""
    sentences = [f"{kind} {name!r} is gone" for name in before if name not in after]
    sentences += [f"{kind} {name!r} is new" for name in after if name not in before]
    for name in before.keys() & after.keys():
        parts = sorted(before[name].keys() | after[name].keys())
        sentences += [
            f"{kind} {name!r} has {part} {_text(after[name].get(part))} instead of {_text(before[name].get(part))}"
            for part in parts
            if before[name].get(part) != after[name].get(part)
        ]
    return sorted(sentences)


def _without_owner(states: Described) -> dict[str, dict[str, Any]]:
    return {name: {part: value for part, value in state.items() if part != "owner"} for name, state in states.items()}


def _moved(before: Described, after: Described) -> list[str]:
    return [
        f"state {name!r} is written by {after[name]['owner']!r} instead of {before[name]['owner']!r}"
        for name in sorted(before.keys() & after.keys())
        if before[name]["owner"] != after[name]["owner"]
    ]


def _text(value: Any) -> str:
    return "[" + ", ".join(value) + "]" if isinstance(value, list) else str(value)
