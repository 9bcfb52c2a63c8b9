"""The graph of a topology with what flows through it, laid out as `txbatch plan` lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from coordinator.operating.ui.charts.svg import Svg, number, rectangle, words
from coordinator.topology.pictures.layered_drawing import LINE, Box, Line, drawing_of
from coordinator.topology.pictures.topology_picture import Edge, TopologyPicture

_HEAD = 44.0
"""What `layered_drawing` leaves for a heading, which the page has already; and below, for lines of text."""
_FOOT = 8.0
_WEIGHTS = {"spout": "box spout", "bolt": "box bolt", "committer": "box committer"}


def flow_chart(picture: TopologyPicture, notes: Mapping[str, str], rates: Mapping[tuple[str, str, str], str]) -> Svg:
    """Returns the graph, at a size at which its text can be read; a page lets it scroll.

    Args:
        picture: of the topology.
        notes: component id -> the line in its box.
        rates: (source, target, stream id) -> the text after the grouping at the edge.
    """
    nodes = tuple(replace(node, note=notes.get(node.component_id, "")) for node in picture.nodes)
    edges = tuple(replace(edge, grouping=_with_rate(edge, rates)) for edge in picture.edges)
    drawing = drawing_of(replace(picture, nodes=nodes, edges=edges, groups=(), facts=()))
    width, height = drawing.width, drawing.height - _HEAD - _FOOT
    heard = "; ".join(f"{edge.target} hears {edge.source}, {edge.label}" for edge in edges)
    told = "; ".join(f"{node.component_id}: {node.note}" for node in nodes if node.note)
    parts = [
        f'<svg class="flow" width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 {number(_HEAD)} {number(width)} {number(height)}" role="img" '
        f'aria-label="{words(". ".join(filter(None, ("graph of the topology", heard, told))))}">'
    ]
    for line in drawing.lines:
        parts += _line(line)
    for box in drawing.boxes:
        parts += _box(box)
    return Svg("".join((*parts, "</svg>")))


def _with_rate(edge: Edge, rates: Mapping[tuple[str, str, str], str]) -> str:
    rate = rates.get((edge.source, edge.target, edge.stream_id), "")
    return f"{edge.grouping} · {rate}" if rate else edge.grouping


def _box(box: Box) -> Iterator[str]:
    kind = _WEIGHTS[box.node.kind]
    radius = 12 if box.node.kind == "spout" else 3
    yield rectangle(box.x, box.y, box.width, box.height, kind=kind, radius=radius)
    top = box.y + (box.height - LINE * len(box.lines)) / 2
    for at, (tone, content) in enumerate(box.lines, start=1):
        tone = "name" if at == 1 else "live" if content == box.node.note else tone  # noqa: PLW2901 - as it is drawn
        place = f'x="{number(box.x + 12)}" y="{number(top + LINE * at - 4)}"'
        yield f'<text class="{tone}" {place}>{words(content)}</text>'


def _line(line: Line) -> Iterator[str]:
    (x, y), *rest = line.points
    path = [f"M{number(x)} {number(y)}"]
    for (bend_x, bend_y), (end_x, _) in zip(rest[::2], rest[1::2], strict=True):
        middle = number((x + bend_x) / 2)
        path.append(f"C{middle} {number(y)} {middle} {number(bend_y)} {number(bend_x)} {number(bend_y)}")
        path.append(f"H{number(end_x)}")
        x, y = end_x, bend_y
    yield f'<path class="way" d="{"".join(path)}"/><path class="head" d="M{number(x)} {number(y)}l-9 -4.5v9z"/>'
    yield f'<text class="dim" x="{number(line.label_x)}" y="{number(line.label_y)}">{words(line.label)}</text>'
