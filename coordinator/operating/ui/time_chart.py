"""Charts of figures over time: one line, or layers on top of each other.

Three round values are at the side, the first and the last time below. Lines are broken at pauses, and a chart has no
more points than can be seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from coordinator.operating.ui.svg_charts import Svg, label_width, number, rule, svg, text

Point = tuple[float, float]
"""Seconds since the epoch, and a value."""
Shown = Callable[[float], str]
WIDTH, HEIGHT = 280.0, 104.0
MOST_POINTS = 300
"""Most points in a drawing; it hardly has more pixels."""
GAP_S = 5.0
"""A pulse is written every second; a line is broken where pulses are missing for longer than this."""
_TOP, _BOTTOM, _RIGHT, _ARROW = 8.0, 20.0, 4.0, 6.0
_PEAK = 6.0
_STEPS = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True, slots=True)
class Layer:
    """One of several figures that add up, all with the same ascending times; its name is its CSS class."""

    name: str
    points: tuple[Point, ...]


def line_chart(title: str, points: Sequence[Point], *, said: Shown, clock: Shown, peak: Shown) -> Svg:
    """Returns the chart of a figure; a peak far above the other values is cut off, and its value written below.

    `said` formats a round value with its unit, `peak` any other value, `clock` a time of day.
    """
    if not points:
        return _nothing(title)
    area = _PlotArea.of(points, said, usual_height([value for _, value in points]))
    most = max(value for _, value in points)
    parts = [*area.grid(said, clock)]
    if most > area.highest:
        parts.append(text((area.left + WIDTH) / 2, HEIGHT - 5, f"peak {peak(most)}", anchor="middle"))
    shown = thinned(points, MOST_POINTS)
    left_out = 2 * len(points) / len(shown) if len(shown) < len(points) else 1.0  # thinning makes pauses longer
    for run in unbroken(shown, GAP_S * left_out):
        if len(run) > 1:
            floor, line = number(area.y(0)), area.path(run)
            below = f"L{number(area.x(run[-1][0]))} {floor}L{number(area.x(run[0][0]))} {floor}Z"
            parts.append(f'<path class="area" d="{line}{below}"/><path class="line" d="{line}"/>')
    at, value = points[-1]
    parts.append(f'<circle class="tip" cx="{number(area.x(at))}" cy="{number(area.y(value))}" r="2.5"/>')
    label = f"{title}, {clock(points[0][0])} to {clock(at)}: last {peak(value)}, at most {peak(most)}"
    return svg(WIDTH, HEIGHT, parts, label=label, kind="chart")


def stacked_chart(title: str, layers: Sequence[Layer], *, said: Shown, clock: Shown) -> Svg:
    """Returns the chart of figures that add up, the first layer at the bottom."""
    if not layers or not layers[0].points:
        return _nothing(title)
    step = -(-len(layers[0].points) // MOST_POINTS)
    kept = [layer.points[::-step][::-1] for layer in layers]
    sums = [total(kept[: count + 1]) for count in range(len(kept))]
    area = _PlotArea.of(sums[-1], said, max(value for _, value in sums[-1]))
    parts = [*area.grid(said, clock)]
    floor = [(at, 0.0) for at, _ in sums[0]]
    for layer, lower, upper in zip(layers, [floor, *sums], sums, strict=False):
        parts.append(f'<path class="layer {layer.name}" d="{area.between(lower, upper, GAP_S * step)}"/>')
    now = ", ".join(f"{layer.name} {said(layer.points[-1][1])}" for layer in layers)
    label = f"{title}, {clock(area.begin)} to {clock(area.end)}: last {now}"
    return svg(WIDTH, HEIGHT, parts, label=label, kind="chart")


@dataclass(frozen=True, slots=True)
class _PlotArea:
    """Maps times and values to coordinates: the first time to `left`, the highest value to the upper edge."""

    left: float
    begin: float
    end: float
    highest: float

    @classmethod
    def of(cls, points: Sequence[Point], said: Shown, height: float) -> _PlotArea:
        """Returns the area for some points; points above `height` may be moved to the upper edge."""
        highest = round_above(height)
        left = max(label_width(said(value)) for value in (0.0, highest / 2, highest)) + _ARROW
        return cls(left, points[0][0], points[-1][0], highest)

    def x(self, at: float) -> float:
        span = self.end - self.begin
        part = (at - self.begin) / span if span > 0 else 1.0
        return self.left + part * (WIDTH - _RIGHT - self.left)

    def y(self, value: float) -> float:
        floor = HEIGHT - _BOTTOM
        return floor - min(1.0, max(0.0, value / self.highest)) * (floor - _TOP)

    def path(self, points: Sequence[Point]) -> str:
        """Returns an SVG path that joins points by straight lines."""
        return "M" + "L".join(f"{number(self.x(at))} {number(self.y(value))}" for at, value in points)

    def between(self, lower: Sequence[Point], upper: Sequence[Point], gap_s: float) -> str:
        """Returns an SVG path around the area between two lines, broken at gaps."""
        floor = dict(lower)
        pieces = []
        for run in unbroken(upper, gap_s):
            back = "".join(f"L{number(self.x(at))} {number(self.y(floor[at]))}" for at, _ in reversed(run))
            pieces.append(f"{self.path(run)}{back}Z")
        return "".join(pieces)

    def grid(self, said: Shown, clock: Shown) -> Iterator[str]:
        """Yields the lines of a chart with their labels: three values, and the first and the last time."""
        for value in (0.0, self.highest / 2, self.highest):
            y = self.y(value)
            yield rule(self.left, y, WIDTH - _RIGHT, y)
            yield text(self.left - _ARROW, y + 4, said(value), anchor="end")
        yield text(WIDTH - _RIGHT, HEIGHT - 5, clock(self.end), anchor="end")
        if self.end > self.begin:
            yield text(self.left, HEIGHT - 5, clock(self.begin))


def round_above(value: float) -> float:
    """Returns a round number that is not below the value, and whose half is round too; 1 for 0."""
    if not value > 0 or math.isinf(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in _STEPS if value <= step * power * (1 + 1e-9)), 10 * power)


def usual_height(values: Sequence[float]) -> float:
    """Returns the height that most values need: one far higher value, as at a start, must not flatten the others."""
    ordered = sorted(values)
    usual, most = ordered[int(0.95 * (len(ordered) - 1))], ordered[-1]
    return 1.5 * usual if 0 < usual < most / _PEAK else most


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """Returns about `most` points, ascending, with the lowest and the highest point of every part.

    So a spike of one second is visible among any number of points.
    """
    if len(points) <= most:
        return list(points)
    count = max(1, most // 2)
    kept: list[Point] = []
    for place in range(count):
        part = points[place * len(points) // count : (place + 1) * len(points) // count]
        if part:
            kept += sorted({min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])})
    return kept if kept[-1] == points[-1] else [*kept, points[-1]]


def unbroken(points: Sequence[Point], gap_s: float) -> Iterator[list[Point]]:
    """Yields runs of points no more than `gap_s` seconds apart."""
    if not points:
        return
    run = [points[0]]
    for before, point in pairwise(points):
        if point[0] - before[0] > gap_s:
            yield run
            run = []
        run.append(point)
    yield run


def total(layers: Sequence[Sequence[Point]]) -> list[Point]:
    """Returns the sum of layers that have values at the same times."""
    return [(points[0][0], sum(value for _, value in points)) for points in zip(*layers, strict=True)]


def _nothing(title: str) -> Svg:
    note = text(WIDTH / 2, HEIGHT / 2, "no figures", anchor="middle")
    return svg(WIDTH, HEIGHT, [note], label=f"{title}: no figures", kind="chart")
