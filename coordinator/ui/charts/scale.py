"""Where values stand in a chart: round limits, and as few points as can be seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

Point = tuple[float, float]
"""Seconds since the epoch, and a value."""
_PEAK = 6.0
_STEPS = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def round_above(value: float) -> float:
    """Returns a round number, not below the value, whose half is round too; 1 for 0."""
    if not value > 0 or math.isinf(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if value <= step * power * (1 + 1e-9)), 10 * power)


def usual_height(values: Sequence[float]) -> float:
    """Returns how high most values reach: a start or a pause that is many times as long must not flatten the rest."""
    ordered = sorted(values)
    usual, most = ordered[int(0.95 * (len(ordered) - 1))], ordered[-1]
    return 1.5 * usual if 0 < usual < most / _PEAK else most


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Returns at most about `most` points, ascending, among them the lowest and the highest of every stretch.

    So a spike of one second is seen however many points there are.
    """
    if len(points) <= most:
        return list(points)
    stretches = max(1, most // 2)
    kept: list[Point] = []
    for number in range(stretches):
        stretch = points[number * len(points) // stretches : (number + 1) * len(points) // stretches]
        if stretch:
            ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
            kept += sorted(ends)
    if kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def unbroken(points: Sequence[Point], gap_s: float) -> Iterator[list[Point]]:
    """Yields runs of points less than `gap_s` seconds apart: nothing is drawn across a longer gap."""
    if not points:
        return
    stretch = [points[0]]
    for before, point in pairwise(points):
        if point[0] - before[0] > gap_s:
            yield stretch
            stretch = []
        stretch.append(point)
    yield stretch


def total(layers: Sequence[Sequence[Point]]) -> list[Point]:
    """Returns the sum of layers that have values at the same times."""
    return [(points[0][0], sum(value for _, value in points)) for points in zip(*layers, strict=True)]
