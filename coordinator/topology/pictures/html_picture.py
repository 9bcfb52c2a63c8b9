"""A picture of a topology as HTML for a notebook: the SVG, and what it shows as tables."""

from __future__ import annotations

from coordinator.topology.pictures.svg_picture import svg_of
from coordinator.topology.pictures.topology_picture import TopologyPicture
from state.html_tables import Markup, paragraph, section, table


def html_of(picture: TopologyPicture) -> str:
    """Returns the picture and a table of the states; a wide picture scrolls instead of shrinking."""
    parts: list[str] = [Markup(f'<div style="overflow-x:auto">{svg_of(picture)}</div>')]
    written = [(node, state) for node in picture.nodes for state in node.states]
    if written:
        rows = [(state.name, state.key, state.redis_type, state.holds, node.component_id) for node, state in written]
        parts.append(table(("state", "key", "type", "holds", "written by"), rows))
    elif not picture.facts:
        parts.append(paragraph("no component declares state"))
    return section(*parts)
