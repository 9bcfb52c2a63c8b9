"""A chart of several figures over time, one on top of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coordinator.ui.charts.line_chart import GAP_S, HEIGHT, MOST_POINTS, WIDTH, Frame, frame_of, grid, nothing
from coordinator.ui.charts.scale import Point, total, unbroken
from coordinator.ui.charts.svg import Svg, number, svg


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the figures.

    Attributes:
        name: what it is.
        kind: its class, which gives it a colour.
        points: ascending; all layers have the same times.
    """

    name: str
    kind: str
    points: tuple[Point, ...]


def stacked_chart(
    title: str, layers: Sequence[Layer], *, said: Callable[[float], str], clock: Callable[[float], str]
) -> Svg:
    """Returns the chart of figures that add up, the first at the bottom.

    Args:
        title: what the sum is.
        layers: the figures.
        said: shows a value with its unit.
        clock: shows a time of day.
    """
    if not layers or not layers[0].points:
        return nothing(title)
    step = -(-len(layers[0].points) // MOST_POINTS)
    kept = [layer.points[::-step][::-1] for layer in layers]
    sums = [total(kept[: number + 1]) for number in range(len(kept))]
    frame = frame_of(sums[-1], said, max(value for _, value in sums[-1]))
    parts = [*grid(frame, said, clock)]
    floor = [(at, 0.0) for at, _ in sums[0]]
    for layer, lower, upper in zip(layers, [floor, *sums], sums, strict=False):
        parts.append(f'<path class="layer {layer.kind}" d="{_between(frame, lower, upper, GAP_S * step)}"/>')
    now = ", ".join(f"{layer.name} {said(layer.points[-1][1])}" for layer in layers)
    return svg(
        WIDTH, HEIGHT, parts, label=f"{title}, {clock(frame.begin)} to {clock(frame.end)}: last {now}", kind="chart"
    )


def _between(frame: Frame, lower: Sequence[Point], upper: Sequence[Point], gap_s: float) -> str:
    """Returns the area between two lines, in steps, in the words of SVG."""
    floor = dict(lower)
    pieces = []
    for stretch in unbroken(upper, gap_s):
        back = "".join(f"L{number(frame.x(at))} {number(frame.y(floor[at]))}" for at, _ in reversed(stretch))
        pieces.append(f"{frame.path(stretch)}{back}Z")
    return "".join(pieces)
