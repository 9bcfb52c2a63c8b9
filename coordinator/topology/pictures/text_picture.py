"""A picture of a topology as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedPlace, TopologyPicture
from state.printable import one_line

_INDENT = "  "


def text_of(picture: TopologyPicture) -> str:
    """Returns the picture as lines: each place with its components, what each hears, and what it writes."""
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
