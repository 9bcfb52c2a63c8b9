"""Gives everything in a picture its coordinates, in pixels, without looking at a font.

Text is drawn in a fixed-width font of `CHARACTER` pixels a character, so that its width is known and nothing overlaps.
Between two columns every line first bends to the height of its end, and then runs level; its label stands above the
level part. Lines that end in one column end at different heights, so labels cannot meet.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from coordinator.topology.pictures.layers import Layers, Place, layers_of
from coordinator.topology.pictures.topology_picture import Edge, Node, PicturedPlace, TopologyPicture
from state.printable import one_line

CHARACTER = 7.0
LINE = 16.0
TEXT_LIMIT = 44
"""Longest text in a box or on a line, in characters; what is cut is whole in the tooltip."""
_PAD, _MARGIN = 12.0, 16.0
_ROW_GAP, _LANE, _PORT = 26.0, 20.0, 20.0
_BEND, _ARROW = 40.0, 12.0
_BAND_PAD, _BAND_HEAD = 12.0, 34.0
_HEAD = 44.0


@dataclass(frozen=True, slots=True)
class Box:
    """A component with its lines of text.

    Attributes:
        node: the component.
        lines: (tone, text) from top to bottom.
        x: its left edge; y, its top.
    """

    node: Node
    lines: tuple[tuple[str, str], ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """An edge with its label.

    Attributes:
        edge: the subscription.
        points: where the line changes direction; it bends between the first two of each pair, and is level after.
        label: the text, which stands above the last level part.
        label_x: where the text begins; label_y, its baseline.
    """

    edge: Edge
    points: tuple[tuple[float, float], ...]
    label: str
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class Band:
    """A place where components run, with its lines of text."""

    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with coordinates; everything lies between 0 and its size.

    Attributes:
        footer: lines of text below the picture.
        footer_y: the baseline of the first of them.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    footer: tuple[str, ...]
    footer_y: float


def text_width(text: str) -> float:
    """Returns the width of text in pixels; a wide character, as in Chinese, takes two places."""
    return CHARACTER * sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def shortened(text: str) -> str:
    """Returns text as it fits into a box or onto a line."""
    whole = one_line(text)
    return whole if len(whole) <= TEXT_LIMIT else f"{whole[: TEXT_LIMIT - 1]}…"


def drawing_of(picture: TopologyPicture) -> Drawing:
    """Returns the picture with coordinates."""
    layers = layers_of(picture)
    texts = {node.component_id: _texts(node) for node in picture.nodes}
    columns = _Columns(picture, layers, texts)
    heights = _heights(picture, layers, texts)
    tops = _tops(layers, heights)
    first = _HEAD + _BAND_HEAD + _BAND_PAD if picture.groups else _HEAD + _MARGIN
    y_of = {place: first + top for place, top in tops.items()}
    bottom = max(y + heights[place] for place, y in y_of.items())
    boxes = tuple(
        Box(
            node,
            texts[node.component_id],
            columns.lefts[place.column],
            y_of[place],
            columns.widths[place.column],
            heights[place],
        )
        for node in picture.nodes
        for place in [_place_of(layers, node)]
    )
    bands = tuple(columns.bands(picture.groups, layers, top=_HEAD, bottom=bottom + _BAND_PAD))
    lines = tuple(_lines(picture, layers, columns, y_of, heights))
    head = max(text_width(picture.topology_id), text_width(picture.headline))
    width = max(columns.right + _MARGIN + (_BAND_PAD if bands else 0), head + 2 * _MARGIN)
    footer = tuple(
        line for fact in picture.facts for line in textwrap.wrap(one_line(fact), int((width - 2 * _MARGIN) / CHARACTER))
    )
    footer_y = bottom + (_BAND_PAD if bands else 0) + LINE + 8
    height = footer_y + LINE * len(footer) if footer else footer_y
    return Drawing(width, height, boxes, lines, bands, footer, footer_y)


class _Columns:
    """Where the columns of a picture begin and how wide they are."""

    def __init__(self, picture: TopologyPicture, layers: Layers, texts: dict[str, tuple[tuple[str, str], ...]]) -> None:
        self._group_of = {member: number for number, group in enumerate(picture.groups) for member in group.members}
        self.widths = [
            max(
                (text_width(text) for place in column if place.component_id for _, text in texts[place.component_id]),
                default=0,
            )
            + 2 * _PAD
            for column in layers.columns
        ]
        ends: list[float] = [0.0] * len(layers.columns)
        for edge, way in zip(picture.edges, layers.ways, strict=True):
            ends[way[-1].column] = max(ends[way[-1].column], text_width(shortened(edge.label)))
        self.gaps = [_BEND + end + _ARROW + 8 for end in ends]
        self._first_of = {number: min(members) for number, members in self._members(layers).items()}
        self._last_of = {number: max(members) for number, members in self._members(layers).items()}
        self._widen_for_bands(picture.groups)
        self.lefts: list[float] = []
        x = _MARGIN
        for column, width in enumerate(self.widths):
            begins, ended = column in self._first_of.values(), column - 1 in self._last_of.values()
            x += self.gaps[column] if column else 0
            x += (_BAND_PAD if begins else 0) + (_BAND_PAD if ended else 0)
            self.lefts.append(x)
            x += width
        self.right = x

    def right_of(self, place: Place) -> float:
        """Returns the right edge of an entry."""
        return self.lefts[place.column] + self.widths[place.column]

    def bands(self, groups: Sequence[PicturedPlace], layers: Layers, *, top: float, bottom: float) -> Iterator[Band]:
        """Yields the bands of the groups that have components."""
        for number, group in enumerate(groups):
            if number in self._first_of:
                first, last = self._first_of[number], self._last_of[number]
                x = self.lefts[first] - _BAND_PAD
                right = self.lefts[last] + self.widths[last] + _BAND_PAD
                yield Band(_heads(group), x, top, right - x, bottom - top)

    def _members(self, layers: Layers) -> dict[int, list[int]]:
        members: dict[int, list[int]] = {}
        for column, places in enumerate(layers.columns):
            for place in places:
                if place.component_id in self._group_of:
                    members.setdefault(self._group_of[place.component_id], []).append(column)
        return members

    def _widen_for_bands(self, groups: Sequence[PicturedPlace]) -> None:
        """Makes the last column of a band as wide as the band's label needs."""
        for number, first in self._first_of.items():
            last = self._last_of[number]
            taken = sum(self.widths[first : last + 1]) + sum(self.gaps[first + 1 : last + 1])
            self.widths[last] += max(0.0, *(text_width(line) - taken for line in _heads(groups[number])))


def _heads(group: PicturedPlace) -> tuple[str, ...]:
    title = " · ".join(filter(None, (group.name, group.phase)))
    return tuple(shortened(line) for line in (title, " · ".join(group.details)) if line)


def _texts(node: Node) -> tuple[tuple[str, str], ...]:
    states = [("ink", f"{state.name}: {state.redis_type} {state.holds}".rstrip()) for state in node.states]
    lines = [("ink", node.component_id), ("dim", node.class_name), ("dim", node.role), ("dim", node.note), *states]
    return tuple((tone, shortened(text)) for tone, text in lines if text)


def _place_of(layers: Layers, node: Node) -> Place:
    return next(place for column in layers.columns for place in column if place.component_id == node.component_id)


def _heights(
    picture: TopologyPicture, layers: Layers, texts: dict[str, tuple[tuple[str, str], ...]]
) -> dict[Place, float]:
    """Returns the height of every entry: of a box, by its lines of text or by how many lines end at it."""
    heights = {}
    for column in layers.columns:
        for place in column:
            ending = sum(way[-1] == place for way in layers.ways)
            has_box = bool(place.component_id)
            text = LINE * len(texts[place.component_id]) + 16 if has_box else 0
            heights[place] = max(text, _PORT * ending + 8) if has_box else _LANE
    return heights


def _tops(layers: Layers, heights: dict[Place, float]) -> dict[Place, float]:
    """Returns the top of every entry, near the middle of what leads to it, and none above 0."""
    tops: dict[Place, float] = {}
    for column in layers.columns:
        wanted = []
        for place in column:
            near = [left for way in layers.ways for left, right in pairwise(way) if right == place]
            middles = [tops[left] + heights[left] / 2 for left in near]
            wanted.append(sum(middles) / len(middles) - heights[place] / 2 if middles else None)
        end = None
        for place, top in zip(column, wanted, strict=True):
            least = end if end is not None else (top if top is not None else 0.0)
            tops[place] = least if top is None else max(top, least)
            end = tops[place] + heights[place] + _ROW_GAP
        shifts = [top - tops[place] for place, top in zip(column, wanted, strict=True) if top is not None]
        for place in column:
            tops[place] += sum(shifts) / len(shifts) if shifts else 0.0
    highest = min(tops.values())
    return {place: top - highest for place, top in tops.items()}


def _lines(
    picture: TopologyPicture,
    layers: Layers,
    columns: _Columns,
    y_of: dict[Place, float],
    heights: dict[Place, float],
) -> Iterator[Line]:
    middle = {place: y + heights[place] / 2 for place, y in y_of.items()}
    for number, (edge, way) in enumerate(zip(picture.edges, layers.ways, strict=True)):
        ending = sorted(
            (each for each, other in enumerate(layers.ways) if other[-1] == way[-1]),
            key=lambda each: (middle[layers.ways[each][-2]], each),
        )
        end_y = middle[way[-1]] + _PORT * (ending.index(number) - (len(ending) - 1) / 2)
        points = [(columns.right_of(way[0]), middle[way[0]])]
        for place in way[1:]:
            is_end = place is way[-1]
            y = end_y if is_end else middle[place]
            points.append((points[-1][0] + _BEND, y))
            points.append((columns.lefts[place.column] if is_end else columns.right_of(place), y))
        label_x = points[-2][0] + 2
        yield Line(edge, tuple(points), shortened(edge.label), label_x, end_y - 5)
