"""Describes a topology in stored text, so that the next start can report changes.

The text is one line of JSON, readable for anybody who looks into Redis. Most changes between runs are allowed and only
reported. The user must accept a state that is no longer declared, or is declared with other types: the stored data
stays unchanged, while later writes go elsewhere or have another meaning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.topology.building.component import Component
from coordinator.topology.building.grouping_words import grouping_in_words
from coordinator.topology.building.topology import Topology
from state.codec import digest64
from state.errors import StateRefusedError
from state.kinds.handles import DeclaredState, declared_states
from state.kinds.state_family import StateFamily
from state.printable import counted, one_line
from state.troubles import Trouble
from state.values.state_kind import ValueType

Described = Mapping[str, Mapping[str, Any]]
_PART_NAMES = {
    "value": "value type",
    "field": "field type",
    "keep": "what is kept",
    "parts": "type of its parts",
    "expires": "expiry of its parts",
    "fields_expire": "expiry of its fields",
}


@dataclass(frozen=True, slots=True)
class TopologyChange:
    """The changes of a topology since an earlier run, one sentence each.

    Attributes:
        said: changes that are allowed and only reported.
        states: changes of states that may have data, which the user has to accept.
        shards: the number of shards before and now, if it has changed; such a change cannot be accepted.
    """

    said: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    shards: tuple[int, int] | None = None


def described(topology: Topology) -> str:
    """Returns the topology as text; equal texts describe equal topologies."""
    states = {
        handle.name: _of_state(handle, component)
        for component in topology.components
        for handle in declared_states(component.spec).values()
    }
    components = {component.component_id: _of_component(component) for component in topology.components}
    shards = {} if topology.shard_count == 1 else {"shards": topology.shard_count}
    return json.dumps({"components": components, "states": states, **shards}, sort_keys=True, ensure_ascii=False)


def fingerprint_of(description: str) -> str:
    """Returns 16 hexadecimal digits that identify a description."""
    return f"{digest64(description.encode()):016x}"


def changes(stored: str, given: str) -> TopologyChange:
    """Compares two descriptions; an unreadable one is itself a change that has to be accepted."""
    if stored == given:
        return TopologyChange()
    try:
        before, after = json.loads(stored), json.loads(given)
        found = _of_kind("state", _without_owner(before["states"]), _without_owner(after["states"]))
        said = _of_kind("component", before["components"], after["components"])
        said += [sentence for sentence in found if _is_of_new_state(sentence)]
        said += _moved(before["states"], after["states"])
        if before.get("shards", 1) != after.get("shards", 1):
            return TopologyChange(shards=(before.get("shards", 1), after.get("shards", 1)))
        states = [sentence for sentence in found if not _is_of_new_state(sentence)]
    except (ValueError, TypeError, KeyError, AttributeError):
        return TopologyChange((), (f"its stored description {one_line(stored, 100)!r} cannot be read",))
    return TopologyChange(tuple(said), tuple(states))


def states_of(description: str) -> set[str]:
    """Returns the names of the states in a description; empty if it is unreadable, which `changes` reports."""
    try:
        return set(json.loads(description)["states"])
    except (ValueError, TypeError, KeyError):
        return set()


def summary(description: str) -> str:
    """Returns a short form of a description for people; the text itself if it cannot be parsed."""
    try:
        found = json.loads(description)
        parts = [_short(name, each) for name, each in found["components"].items()]
        began = {name: f" from txid {txid}" for name, (txid, _) in found.get("began", {}).items()}
        states = [f"{name}:{each['kind']}{began.get(name, '')}" for name, each in found["states"].items()]
    except (ValueError, TypeError, KeyError, AttributeError):
        return description
    shards = f", on {found['shards']} shards" if "shards" in found else ""
    return f"{', '.join(parts)}; states {', '.join(states) or 'none'}{shards}"


def _short(name: str, component: Mapping[str, Any]) -> str:
    chosen = " by plan" if component.get("planned") else ""
    return f"{name}*{component['tasks']}{chosen}[{component['kind']}]"


def check_topology(
    topology_id: str, change: TopologyChange, *, committed_txid: int, accept_state_changes: bool
) -> list[str]:
    """Decides whether a changed topology may run; called once at start, before the takeover (driver).

    Returns:
        The changes, one sentence each.

    Raises:
        StateRefusedError: transactions were committed, a state was removed or has other types, and the user has not
            accepted that.
    """
    if change.shards is not None and committed_txid:
        before, after = change.shards
        raise StateRefusedError(
            f"topology {topology_id!r} has its state on {counted(before, 'shard')}, but was given shards={after}; "
            f"give {before}, or move the state over {counted(after, 'shard')}: `txbatch state export {topology_id} "
            f"--output FILE`, `txbatch state import {topology_id} FILE --replace --shards {after}`"
        ).about(Trouble.STATE_CHANGED)
    if change.states and committed_txid and not accept_state_changes:
        raise StateRefusedError(
            f"topology {topology_id!r} has written state, and its states have changed since; declare them as they "
            f"were; {'; '.join(change.states)}; it is committed up to txid {committed_txid}, and what was written "
            f"keeps its former name and types; or start over with `txbatch drop {topology_id}`, choose another "
            "topology id, or accept the change with --accept-state-changes (in Python RunOptions.accept_state_changes)"
        ).about(Trouble.STATE_CHANGED)
    late = f"; what was committed up to txid {committed_txid} is not read again for it, so it is not in there"
    said = [sentence + late if committed_txid and _is_of_new_state(sentence) else sentence for sentence in change.said]
    return [*said, *change.states]


def _is_of_new_state(sentence: str) -> bool:
    return sentence.startswith("state ") and sentence.endswith(" is new")


def _of_component(component: Component) -> dict[str, Any]:
    inputs = sorted(
        f"{s.upstream_id}/{s.stream_id}: {s.grouping!r}" for s in component.subscriptions if not s.is_of_letters
    )
    described = {
        "kind": component.kind.value,
        "tasks": component.task_count,
        "parallelism": component.parallelism,
        "inputs": inputs,
    }
    return described | {"planned": True} if component.is_planned else described


def _of_state(declared: DeclaredState, component: Component) -> dict[str, Any]:
    """Returns a state's declaration; rare properties are left out, so that most states keep their earlier text."""
    handle = declared.template if isinstance(declared, StateFamily) else declared
    described: dict[str, Any] = {
        "kind": handle.kind.value,
        "value": handle.value_type.value,
        "field": handle.field_type.value,
        "owner": component.component_id,
    }
    if handle.value_type is ValueType.DECIMAL:
        described["scale"] = handle.scale
    if handle.retention.side is not None:
        described["keep"] = f"{handle.retention.side.value} {handle.retention.most}"
    if handle.fields_expire:
        described["fields_expire"] = True
    if isinstance(declared, StateFamily):
        described["parts"] = declared.part_type.value
        if declared.expire_at is not None:
            described["expires"] = True
    return described


def _of_kind(kind: str, before: Described, after: Described) -> list[str]:
    """Returns sentences on added and removed items, and on differing parts of the others."""
    sentences = [f"{kind} {name!r} was removed" for name in before if name not in after]
    sentences += [f"{kind} {name!r} is new" for name in after if name not in before]
    for name in before.keys() & after.keys():
        sentences += [
            f"{kind} {name!r}: {_PART_NAMES.get(part, part)} changed from {_text(before[name].get(part))} to "
            f"{_text(after[name].get(part))}"
            for part in _changed_parts(before[name], after[name])
        ]
    return sorted(sentences)


def _changed_parts(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    parts = {part for part in before.keys() | after.keys() if before.get(part) != after.get(part)}
    parts.discard("planned")  # it does not matter who chose the number
    if "tasks" in parts:  # usually the parallelism was changed, and with it the number of tasks
        parts.discard("parallelism")
    return sorted(parts)


def _without_owner(states: Described) -> dict[str, dict[str, Any]]:
    return {name: {part: value for part, value in state.items() if part != "owner"} for name, state in states.items()}


def _moved(before: Described, after: Described) -> list[str]:
    return [
        f"state {name!r}: owner changed from {before[name]['owner']!r} to {after[name]['owner']!r}"
        for name in sorted(before.keys() & after.keys())
        if before[name]["owner"] != after[name]["owner"]
    ]


def _text(value: Any) -> str:
    return "[" + ", ".join(map(_input_text, value)) + "]" if isinstance(value, list) else str(value)


def _input_text(stored: str) -> str:
    """Returns an input for display; its grouping is stored as a repr, which identifies it."""
    source, colon, grouping = stored.partition(": ")
    return source + colon + grouping_in_words(grouping)
