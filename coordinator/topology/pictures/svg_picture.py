"""A picture of a topology as SVG: self-contained, in the colours of a light or dark page, with a text for readers.

It carries no script, no font and no id, so any number of them may stand in one page.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from coordinator.topology.pictures.layered_drawing import LINE, Band, Box, Drawing, Line, drawing_of
from coordinator.topology.pictures.topology_picture import Node, TopologyPicture
from state.printable import one_line

_PARTS = (  # class, CSS property, its colour on a light page, and on a dark one
    ("page", "fill", "#ffffff", "#0d1117"),
    ("band", "fill", "#f6f8fa", "#161b22"),
    ("box", "fill", "#ffffff", "#0d1117"),
    ("dim", "fill", "#57606a", "#9da7b1"),
    ("ink", "fill", "#1f2328", "#e6edf3"),
    ("tip", "fill", "#6e7781", "#8b949e"),
    ("band", "stroke", "#d0d7de", "#3d444d"),
    ("way", "stroke", "#6e7781", "#8b949e"),
    ("spout", "stroke", "#0969da", "#58a6ff"),
    ("bolt", "stroke", "#6e7781", "#8b949e"),
    ("committer", "stroke", "#1a7f37", "#3fb950"),
)


def _rules(*, is_dark: bool, within: str = "") -> str:
    """Returns the CSS rules of a theme, colours spelled out: not every viewer of SVG knows variables."""
    return "".join(
        f"{within}.txbatch-plan .{name}{{{kind}:{dark if is_dark else light}}}" for name, kind, light, dark in _PARTS
    )


_STYLE = "\n".join(
    (
        _rules(is_dark=False),
        f"@media (prefers-color-scheme:dark){{{_rules(is_dark=True)}}}",
        # notebooks choose their colours themselves
        _rules(is_dark=False, within='[data-jp-theme-light="true"] '),
        _rules(is_dark=True, within='[data-jp-theme-light="false"] '),
    )
)
_FONT = "ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace"
_FONT_SIZE = 11.5
"""In pixels; a character of any of these fonts is then at most `CHARACTER` wide."""
_WEIGHTS = {"spout": 1.5, "bolt": 1.5, "committer": 2.5}


def svg_of(picture: TopologyPicture) -> str:
    """Returns the picture as one SVG element."""
    return "\n".join(_elements(picture, drawing_of(picture))) + "\n"


def _elements(picture: TopologyPicture, drawing: Drawing) -> Iterator[str]:
    width, height = f"{drawing.width:.0f}", f"{drawing.height:.0f}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="txbatch-plan" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="{_FONT_SIZE}" '
        f'aria-label="{_escaped(_title(picture))}">'
    )
    yield f"<title>{_escaped(_title(picture))}</title>"
    yield f"<desc>{_escaped(_description(picture))}</desc>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="page" width="{width}" height="{height}" rx="6"/>'
    yield _text("ink", 16, 18, picture.topology_id, is_bold=True)
    yield _text("dim", 16, 34, picture.headline)
    for band in drawing.bands:
        yield from _band(band)
    yield from graph_elements(drawing)
    for number, text in enumerate(drawing.footer):
        yield _text("dim", 16, drawing.footer_y + LINE * number, text)
    yield "</svg>"


def graph_elements(drawing: Drawing, note_tone: str = "") -> Iterator[str]:
    """Returns edges and components; `note_tone` overrides the colour of notes. A page styles the classes itself."""
    for line in drawing.lines:
        yield from _line(line)
    for box in drawing.boxes:
        yield from _box(box, note_tone)


def _band(band: Band) -> Iterator[str]:
    yield f'<rect class="band" {_extent(band)} rx="6"/>'
    for number, text in enumerate(band.lines, start=1):
        yield _text("ink" if number == 1 else "dim", band.x + 12, band.y + 4 + LINE * number, text)


def _box(box: Box, note_tone: str) -> Iterator[str]:
    kind = box.node.kind
    yield f"<g><title>{_escaped(_tooltip(box.node))}</title>"
    yield (
        f'<rect class="box {kind}" {_extent(box)} stroke-width="{_WEIGHTS[kind]}" rx="{12 if kind == "spout" else 3}"/>'
    )
    for number, (tone, text, x, y) in enumerate(box.texts()):
        yield _text(note_tone if note_tone and text == box.node.note else tone, x, y, text, is_bold=number == 0)
    yield "</g>"


def _line(line: Line) -> Iterator[str]:
    path, (x, y) = " ".join(line.path("{:.1f}".format)), line.points[-1]
    edge = line.edge
    stream = f"{edge.stream_id}({', '.join(edge.fields)})" if edge.fields else edge.stream_id
    story = f"{edge.source} to {edge.target}: {edge.label}; {stream}"
    yield f"<g><title>{_escaped(story)}</title>"
    yield f'<path class="way" fill="none" stroke-width="{3 if edge.in_memory else 1.2}" d="{path}"/>'
    yield f'<path class="tip" d="M{x:.1f} {y:.1f}l-9 -4.5v9z"/>'
    yield f"{_text('dim', line.label_x, line.label_y, line.label)}</g>"


def _text(tone: str, x: float, y: float, text: str, *, is_bold: bool = False) -> str:
    weight = ' font-weight="bold"' if is_bold else ""
    return f'<text class="{tone}" x="{x:.1f}" y="{y:.1f}"{weight}>{_escaped(text)}</text>'


def _extent(area: Band | Box) -> str:
    return f'x="{area.x:.1f}" y="{area.y:.1f}" width="{area.width:.1f}" height="{area.height:.1f}"'


def _title(picture: TopologyPicture) -> str:
    return f"{picture.topology_id}: {picture.headline}"


def _description(picture: TopologyPicture) -> str:
    """Says in words what the picture shows."""
    heard = [f"{edge.target} receives from {edge.source}, grouping {edge.label}" for edge in picture.edges]
    placed = [f"{group.label}: {', '.join(group.members) or 'no component'}" for group in picture.groups]
    return ". ".join([*placed, *heard, *picture.facts])


def _tooltip(node: Node) -> str:
    states = [f"{state.key}: {state.redis_type} {state.holds}".rstrip() for state in node.states]
    name = f"{node.component_id} ({node.class_name})" if node.class_name else node.component_id
    return "; ".join(filter(None, (f"{name}, {node.role}", node.note, *states)))


def _escaped(text: str) -> str:
    return escape(one_line(text))
