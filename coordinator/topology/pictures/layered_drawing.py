"""Gives everything in a picture its coordinates, in pixels, without looking at a font.

Text is drawn in a fixed-width font of `CHARACTER` pixels a character, so that its width is known and nothing overlaps.
Between two columns every line first bends to the height of its end, and then runs level; its label stands above the
level part. Lines that end in one column end at different heights, so labels cannot meet.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterator
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
    """A component with its lines of text: (tone, text) from top to bottom."""

    node: Node
    lines: tuple[tuple[str, str], ...]
    x: float
    y: float
    width: float
    height: float

    def texts(self) -> Iterator[tuple[str, str, float, float]]:
        """Yields (tone, text, x, baseline) of each line."""
        top = self.y + (self.height - LINE * len(self.lines)) / 2
        for number, (tone, text) in enumerate(self.lines, start=1):
            yield tone, text, self.x + _PAD, top + LINE * number - 4


@dataclass(frozen=True, slots=True)
class Line:
    """An edge with its label, which stands above the last level part.

    Attributes:
        points: where the line changes direction; it bends between the first two of each pair, and is level after.
        label_y: the baseline of the label.
    """

    edge: Edge
    points: tuple[tuple[float, float], ...]
    label: str
    label_x: float
    label_y: float

    def path(self, number: Callable[[float], str]) -> list[str]:
        """Returns the commands of an SVG path."""
        (x, y), *rest = self.points
        path = [f"M{number(x)} {number(y)}"]
        for (bend_x, bend_y), (end_x, _) in zip(rest[::2], rest[1::2], strict=True):
            middle = number((x + bend_x) / 2)
            path.append(f"C{middle} {number(y)} {middle} {number(bend_y)} {number(bend_x)} {number(bend_y)}")
            path.append(f"H{number(end_x)}")
            x, y = end_x, bend_y
        return path


@dataclass(frozen=True, slots=True)
class Band:
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with coordinates; everything lies between 0 and its size. The footer is lines of text below it."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    bands: tuple[Band, ...]
    footer: tuple[str, ...]
    footer_y: float  # of the first baseline


def text_width(text: str) -> float:
    """Returns the width of text in pixels; a wide character, as in Chinese, takes two places."""
    return CHARACTER * sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def shortened(text: str) -> str:
    whole = one_line(text)
    return whole if len(whole) <= TEXT_LIMIT else f"{whole[: TEXT_LIMIT - 1]}…"


def drawing_of(picture: TopologyPicture) -> Drawing:
    layers = layers_of(picture)
    texts = {node.component_id: _texts(node) for node in picture.nodes}
    columns = _Columns(picture, layers, texts)
    heights = _heights(layers, texts)
    tops = _tops(layers, heights)
    first = _HEAD + _BAND_HEAD + _BAND_PAD if picture.groups else _HEAD + _MARGIN
    y_of = {place: first + top for place, top in tops.items()}
    bottom = max(y + heights[place] for place, y in y_of.items())
    boxes = []
    for node in picture.nodes:
        place = layers.placed[node.component_id]
        width, height = columns.widths[place.column], heights[place]
        boxes.append(Box(node, texts[node.component_id], columns.lefts[place.column], y_of[place], width, height))
    bands = tuple(columns.bands(top=_HEAD, bottom=bottom + _BAND_PAD))
    lines = tuple(_lines(picture, layers, columns, y_of, heights))
    head = max(text_width(picture.topology_id), text_width(picture.headline))
    width = max(columns.right + _MARGIN + (_BAND_PAD if bands else 0), head + 2 * _MARGIN)
    footer = tuple(
        line for fact in picture.facts for line in textwrap.wrap(one_line(fact), int((width - 2 * _MARGIN) / CHARACTER))
    )
    footer_y = bottom + (_BAND_PAD if bands else 0) + LINE + 8
    height = footer_y + LINE * len(footer) if footer else footer_y
    return Drawing(width, height, tuple(boxes), lines, bands, footer, footer_y)


class _Columns:
    """Where the columns of a picture begin and how wide they are."""

    def __init__(self, picture: TopologyPicture, layers: Layers, texts: dict[str, tuple[tuple[str, str], ...]]) -> None:
        self.widths = [2 * _PAD] * len(layers.columns)
        for component_id, place in layers.placed.items():
            widest = max(text_width(text) for _, text in texts[component_id])
            self.widths[place.column] = max(self.widths[place.column], widest + 2 * _PAD)
        ends = [0.0] * len(layers.columns)
        for edge, way in zip(picture.edges, layers.ways, strict=True):
            ends[way[-1].column] = max(ends[way[-1].column], text_width(shortened(edge.label)))
        gaps = [_BEND + end + _ARROW + 8 for end in ends]
        self._bands: list[tuple[tuple[str, ...], int, int]] = []  # heads, first and last column
        for group in picture.groups:
            if group.members:
                own = [layers.placed[member].column for member in group.members]
                heads, first, last = _heads(group), min(own), max(own)
                taken = sum(self.widths[first : last + 1]) + sum(gaps[first + 1 : last + 1])
                self.widths[last] += max(0.0, *(text_width(line) - taken for line in heads))
                self._bands.append((heads, first, last))
        firsts, lasts = {first for _, first, _ in self._bands}, {last for _, _, last in self._bands}
        self.lefts: list[float] = []
        x = _MARGIN
        for column, width in enumerate(self.widths):
            x += gaps[column] if column else 0
            x += _BAND_PAD * ((column in firsts) + (column - 1 in lasts))
            self.lefts.append(x)
            x += width
        self.right = x

    def right_of(self, place: Place) -> float:
        return self.lefts[place.column] + self.widths[place.column]

    def bands(self, *, top: float, bottom: float) -> Iterator[Band]:
        """Yields the bands of the groups that have components."""
        for heads, first, last in self._bands:
            x = self.lefts[first] - _BAND_PAD
            right = self.lefts[last] + self.widths[last] + _BAND_PAD
            yield Band(heads, x, top, right - x, bottom - top)


def _heads(group: PicturedPlace) -> tuple[str, ...]:
    title = " · ".join(filter(None, (group.name, group.phase)))
    return tuple(shortened(line) for line in (title, " · ".join(group.details)) if line)


def _texts(node: Node) -> tuple[tuple[str, str], ...]:
    states = [("ink", f"{state.name}: {state.redis_type} {state.holds}".rstrip()) for state in node.states]
    lines = [("ink", node.component_id), ("dim", node.class_name), ("dim", node.role), ("dim", node.note), *states]
    return tuple((tone, shortened(text)) for tone, text in lines if text)


def _heights(layers: Layers, texts: dict[str, tuple[tuple[str, str], ...]]) -> dict[Place, float]:
    """Returns the height of every entry: of a box, by its lines of text or by how many lines end at it."""
    heights = {place: _LANE for column in layers.columns for place in column}
    for component_id, place in layers.placed.items():
        ending = sum(way[-1] == place for way in layers.ways)
        heights[place] = max(LINE * len(texts[component_id]) + 16, _PORT * ending + 8)
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
