"""Makes the picture of a topology from its stored description, for readers that do not have the topology. Pure.

The description has no class names, no fields of streams and no plan, so the picture has none either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from coordinator.building.topology_picture import GROUPING_WORDS
from coordinator.pictures.topology_picture import Edge, Node, PicturedState, TopologyPicture
from state.keys import Keys
from state.printable import one_line
from state.values.state_kind import StateKind

_INPUT = re.compile(r"([^/:]+)/([^/:]+): (.*)", re.DOTALL)
_GROUPING = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_WORDS = {kind.__name__: words for kind, words in GROUPING_WORDS.items()}
_WITH_FIELDS = {"FieldsGrouping": "fields", "PartialKeyGrouping": "partial key"}
_KINDS = ("spout", "bolt", "committer")
_NAME_LIMIT = 64


def picture_of_description(topology_id: str, description: str) -> TopologyPicture | None:
    """Returns the picture of a topology, None if its description cannot be read.

    Args:
        topology_id: a valid name.
        description: as `topology_description.described` makes it; txbatch of another version may have written it.
    """
    try:
        found = json.loads(description)
        components: dict[str, Any] = found["components"]
        inputs = {name: [_input(text) for text in each["inputs"]] for name, each in components.items()}
        order = _flow_order(inputs)
        states = _states_of(topology_id, found["states"])
        nodes = tuple(_node(name, components[name], states.get(name, ())) for name in order)
        edges = tuple(
            Edge(source, name, stream, (), grouping) for name in order for source, stream, grouping in inputs[name]
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return TopologyPicture(topology_id, "transactional", nodes, edges) if nodes else None


def grouping_in_words(text: str) -> str:
    """Returns how a picture calls the grouping with this repr; see `topology_picture.grouping_label`."""
    found = _GROUPING.fullmatch(text)
    if found is not None and found[1] in _WITH_FIELDS:
        names = re.findall(r"'([^']*)'", found[2])
        return f"{_WITH_FIELDS[found[1]]} {', '.join(names)}"
    if found is not None and found[1] in _WORDS:
        return _WORDS[found[1]]
    return one_line(text, _NAME_LIMIT)


def _input(text: str) -> tuple[str, str, str]:
    found = _INPUT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an input")
    return found[1], found[2], grouping_in_words(found[3])


def _flow_order(inputs: Mapping[str, list[tuple[str, str, str]]]) -> list[str]:
    """Returns the components so that each stands after those it hears, and by name where that leaves a choice.

    Raises:
        ValueError: they hear each other in a circle, or one hears a component that is not there.
    """
    order: list[str] = []
    left = sorted(inputs)
    while left:
        ready = next((name for name in left if all(source in order for source, _, _ in inputs[name])), None)
        if ready is None:
            raise ValueError(f"components {left} have no order")
        order.append(ready)
        left.remove(ready)
    return order


def _node(name: str, component: Mapping[str, Any], states: tuple[PicturedState, ...]) -> Node:
    kind = str(component["kind"])
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is not a kind of component")
    return Node(name, kind, "", int(component["tasks"]), states)


def _states_of(topology_id: str, states: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[PicturedState, ...]]:
    found: dict[str, tuple[PicturedState, ...]] = {}
    for name, state in sorted(states.items()):
        kind, value, field = StateKind(state["kind"]), str(state["value"]), str(state["field"])
        holds = {
            StateKind.HASH: f"{field} -> {value}",
            StateKind.SORTED_SET: f"{field} -> score",
            StateKind.SET: field,
            StateKind.HYPERLOGLOG: field,
        }.get(kind, value)
        part = ":…" if "parts" in state else ""
        shown = PicturedState(f"{name}{part}", f"{Keys(topology_id).state(name)}{part}", kind.redis_type, holds)
        found[str(state["owner"])] = (*found.get(str(state["owner"]), ()), shown)
    return found
