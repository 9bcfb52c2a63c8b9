"""Writes pictures of topologies as text for a terminal, as a Mermaid diagram, and as HTML for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedPlace, TopologyPicture
from state.html_tables import paragraph, preformatted, section, table
from state.printable import one_line

_INDENT = "  "


def text_of(picture: TopologyPicture) -> str:
    """Returns the picture as lines: each place with its components, their subscriptions and states."""
    groups = picture.groups or (PicturedPlace("", "", tuple(node.component_id for node in picture.nodes)),)
    nodes = {node.component_id: node for node in picture.nodes}
    lines = [f"{picture.topology_id}: {picture.headline}"]
    widths = _widths(picture.nodes)
    for group in groups:
        lines += ["", group.label] if group.label else []
        for member in group.members:
            heard = [edge for edge in picture.edges if edge.target == member]
            lines += _lines_of(nodes[member], heard, widths)
    lines += ["", *picture.facts] if picture.facts else []
    return "\n".join(one_line(line) for line in lines)


def _columns(node: Node) -> tuple[str, ...]:
    tasks = "1 task" if node.task_count == 1 else f"{node.task_count:,} tasks"
    return node.component_id, node.kind, node.class_name, tasks


def _widths(nodes: Iterable[Node]) -> list[int]:
    return [max(map(len, column)) for column in zip(*map(_columns, nodes), strict=True)]


def _lines_of(node: Node, heard: Sequence[Edge], widths: Sequence[int]) -> Iterator[str]:
    columns = [text.ljust(width) for text, width in zip(_columns(node), widths, strict=True)]
    sources = [f"<- {edge.source} by {edge.label}" for edge in heard] or [""]
    yield f"{_INDENT}{'  '.join([*columns, sources[0]])}".rstrip()
    indent = _INDENT + " " * (sum(widths) + 2 * len(widths))
    yield from (f"{indent}{source}" for source in sources[1:])
    yield from (
        f"{indent}-> {state.key} ({' '.join(filter(None, (state.redis_type, state.holds)))})" for state in node.states
    )
    if node.note:
        yield f"{indent}{node.note}"


_SHAPES = {"spout": ("([", "])"), "bolt": ("[", "]"), "committer": ("[[", "]]")}
_ESCAPES = str.maketrans({character: f"#{ord(character)};" for character in '#&<>"`'})
"""Mermaid's syntax of character references; every label is quoted, so nothing else has a meaning in it."""


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


def html_of(picture: TopologyPicture) -> str:
    """Returns the picture as its text, and a table of the states."""
    parts: list[str] = [preformatted(text_of(picture))]
    written = [(node, state) for node in picture.nodes for state in node.states]
    if written:
        rows = [(state.name, state.key, state.redis_type, state.holds, node.component_id) for node, state in written]
        parts.append(table(("state", "key", "type", "holds", "written by"), rows))
    elif not picture.facts:
        parts.append(paragraph("no component declares state"))
    return section(*parts)
