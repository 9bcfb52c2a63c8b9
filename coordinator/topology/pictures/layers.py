"""Orders the components of a picture in columns, from left to right, and within each column from top to bottom.

A component stands one column to the right of the last one it hears. Components that run in one place have columns of
their own, so that a place can be drawn as a band. An edge that skips columns passes through a lane of its own in each,
so that no line crosses a box. Within a column the order is the barycentre of the neighbours', swept to and fro a few
times, which removes most crossings (Sugiyama, Tagawa and Toda, 1981). Nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from coordinator.topology.pictures.topology_picture import Edge, TopologyPicture

_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of a column: a component, or the lane of an edge that passes through."""

    component_id: str  # "" for a lane
    edge: int  # its number; -1 for a component
    column: int


@dataclass(frozen=True, slots=True)
class Layers:
    """The entries of all columns, and the way of every edge through them.

    Attributes:
        columns: from left to right; each from top to bottom.
        ways: for each edge of the picture, the places it leads through, the first and the last being components.
        placed: component id -> its entry.
    """

    columns: tuple[tuple[Place, ...], ...]
    ways: tuple[tuple[Place, ...], ...]
    placed: Mapping[str, Place]


def layers_of(picture: TopologyPicture) -> Layers:
    """Returns the columns of a picture."""
    column_of = _columns_of(picture)
    columns: list[list[Place]] = [[] for _ in range(1 + max(column_of.values()))]
    placed = {node.component_id: Place(node.component_id, -1, column_of[node.component_id]) for node in picture.nodes}
    for place in placed.values():
        columns[place.column].append(place)
    ways = []
    for number, edge in enumerate(picture.edges):
        source, target = placed[edge.source], placed[edge.target]
        lanes = [Place("", number, column) for column in range(source.column + 1, target.column)]
        for lane in lanes:
            columns[lane.column].append(lane)
        ways.append((source, *lanes, target))
    return Layers(_swept(columns, ways), tuple(ways), placed)


def _columns_of(picture: TopologyPicture) -> dict[str, int]:
    if not picture.groups:
        return _longest_paths([node.component_id for node in picture.nodes], picture.edges, first=0)
    column_of: dict[str, int] = {}
    for group in picture.groups:
        column_of |= _longest_paths(group.members, picture.edges, first=1 + max(column_of.values(), default=-1))
    return column_of


def _longest_paths(members: Sequence[str], edges: Sequence[Edge], *, first: int) -> dict[str, int]:
    """Returns the column of each member, which come in flow order, by the edges among them."""
    column_of: dict[str, int] = {}
    for member in members:
        above = [column_of[edge.source] for edge in edges if edge.target == member and edge.source in column_of]
        column_of[member] = max(above, default=first - 1) + 1
    return column_of


def _swept(columns: Sequence[Sequence[Place]], ways: Sequence[Sequence[Place]]) -> tuple[tuple[Place, ...], ...]:
    before: dict[Place, list[Place]] = {}
    after: dict[Place, list[Place]] = {}
    for way in ways:
        for left, right in pairwise(way):
            before.setdefault(right, []).append(left)
            after.setdefault(left, []).append(right)
    ordered = [list(column) for column in columns]
    for sweep in range(_SWEEPS):
        neighbours, order = (before, ordered[1:]) if sweep % 2 == 0 else (after, ordered[-2::-1])
        rank = {place: position for column in ordered for position, place in enumerate(column)}
        for column in order:
            centres = {place: fmean(rank[each] for each in neighbours.get(place, [place])) for place in column}
            column.sort(key=centres.__getitem__)
            rank |= {place: position for position, place in enumerate(column)}
    return tuple(tuple(column) for column in ordered)
