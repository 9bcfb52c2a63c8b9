"""A picture of a topology as a Mermaid flowchart, for Markdown that renders it."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator.topology.pictures.topology_picture import Node, TopologyPicture
from state.printable import one_line

_SHAPES = {"spout": ("([", "])"), "bolt": ("[", "]"), "committer": ("[[", "]]")}
_ESCAPES = str.maketrans({character: f"#{ord(character)};" for character in '#&<>"`'})
"""Mermaid's own form of character references; every label is quoted, so nothing else has a meaning in it."""


def mermaid_of(picture: TopologyPicture) -> str:
    """Returns the picture as the text of a flowchart from left to right."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: TopologyPicture) -> Iterator[str]:
    name = {node.component_id: f"c{number}" for number, node in enumerate(picture.nodes, start=1)}
    nodes = {node.component_id: node for node in picture.nodes}
    yield "flowchart LR"
    grouped = {member for group in picture.groups for member in group.members}
    for number, group in enumerate(picture.groups, start=1):
        if group.members:
            yield f'  subgraph g{number}["{_escaped(group.label)}"]'
            yield from (f"    {name[member]}{_shape(nodes[member])}" for member in group.members)
            yield "  end"
    yield from (
        f"  {name[node.component_id]}{_shape(node)}" for node in picture.nodes if node.component_id not in grouped
    )
    for edge in picture.edges:
        arrow = "==>" if edge.in_memory else "-->"
        yield f'  {name[edge.source]} {arrow}|"{_escaped(edge.label)}"| {name[edge.target]}'
    written = [(node, state) for node in picture.nodes for state in node.states]
    for number, (node, state) in enumerate(written, start=1):
        yield f'  s{number}[("{_escaped(state.key)}<br/>{_escaped(state.redis_type)} {_escaped(state.holds)}")]'
        yield f"  {name[node.component_id]} -.-> s{number}"


def _shape(node: Node) -> str:
    opening, closing = _SHAPES[node.kind]
    lines = (node.component_id, node.class_name, node.role, node.note)
    return f'{opening}"{"<br/>".join(_escaped(line) for line in lines if line)}"{closing}'


def _escaped(text: str) -> str:
    return one_line(text).translate(_ESCAPES)
