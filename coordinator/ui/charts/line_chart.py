"""A chart of one figure over time: a line, with its highest round value at the side and its times below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from coordinator.ui.charts.scale import Point, round_above, thinned, unbroken, usual_height
from coordinator.ui.charts.svg import Svg, label_width, number, rule, svg, text

WIDTH, HEIGHT = 280.0, 104.0
MOST_POINTS = 300
"""Points in a drawing; there are hardly more pixels."""
GAP_S = 5.0
"""A pulse is written every second: where it is missing for longer, the line is broken."""
_TOP, _BOTTOM, _RIGHT, _ARROW = 8.0, 20.0, 4.0, 6.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The place of a chart's values.

    Attributes:
        left: where the times begin, to the right of the longest label.
        begin, end: the times, in seconds since the epoch.
        highest: the value at the upper edge.
    """

    left: float
    begin: float
    end: float
    highest: float

    def x(self, at: float) -> float:
        """Returns where a time stands."""
        span = self.end - self.begin
        part = (at - self.begin) / span if span > 0 else 1.0
        return self.left + part * (WIDTH - _RIGHT - self.left)

    def y(self, value: float) -> float:
        """Returns where a value stands."""
        floor = HEIGHT - _BOTTOM
        return floor - min(1.0, max(0.0, value / self.highest)) * (floor - _TOP)

    def path(self, points: Sequence[Point]) -> str:
        """Returns points joined by straight lines, in the words of SVG."""
        return "M" + "L".join(f"{number(self.x(at))} {number(self.y(value))}" for at, value in points)


def line_chart(
    title: str,
    points: Sequence[Point],
    *,
    said: Callable[[float], str],
    clock: Callable[[float], str],
    peak: Callable[[float], str],
) -> Svg:
    """Returns the chart of a figure; a peak far above the rest is cut off at the top and told in words below.

    Args:
        title: what the figure is.
        points: ascending; without any, the chart says that it has no figures.
        said: shows a value with its unit.
        clock: shows a time of day.
        peak: shows a value that is not round.
    """
    if not points:
        return nothing(title)
    frame = frame_of(points, said, usual_height([value for _, value in points]))
    most = max(value for _, value in points)
    parts = [*grid(frame, said, clock)]
    if most > frame.highest:
        parts.append(text((frame.left + WIDTH) / 2, HEIGHT - 5, f"peak {peak(most)}", anchor="middle"))
    shown = thinned(points, MOST_POINTS)
    for stretch in unbroken(shown, _gap(points, shown)):
        if len(stretch) > 1:
            floor = frame.y(0)
            area = f"{frame.path(stretch)}L{number(frame.x(stretch[-1][0]))} {number(floor)}"
            parts.append(f'<path class="area" d="{area}L{number(frame.x(stretch[0][0]))} {number(floor)}Z"/>')
            parts.append(f'<path class="line" d="{frame.path(stretch)}"/>')
    at, value = points[-1]
    parts.append(f'<circle class="tip" cx="{number(frame.x(at))}" cy="{number(frame.y(value))}" r="2.5"/>')
    label = f"{title}, {clock(points[0][0])} to {clock(at)}: last {peak(value)}, at most {peak(most)}"
    return svg(WIDTH, HEIGHT, parts, label=label, kind="chart")


def frame_of(points: Sequence[Point], said: Callable[[float], str], height: float) -> Frame:
    """Returns the place for these points; one that is above `height` may stand at the upper edge."""
    highest = round_above(height)
    left = max(label_width(said(value)) for value in (0.0, highest / 2, highest)) + _ARROW
    return Frame(left, points[0][0], points[-1][0], highest)


def grid(frame: Frame, said: Callable[[float], str], clock: Callable[[float], str]) -> Iterator[str]:
    """Yields the lines of a chart with their labels: three values, and the first and the last time."""
    for value in (0.0, frame.highest / 2, frame.highest):
        y = frame.y(value)
        yield rule(frame.left, y, WIDTH - _RIGHT, y)
        yield text(frame.left - _ARROW, y + 4, said(value), anchor="end")
    below = HEIGHT - 5
    yield text(WIDTH - _RIGHT, below, clock(frame.end), anchor="end")
    if frame.end > frame.begin:
        yield text(frame.left, below, clock(frame.begin))


def nothing(title: str) -> Svg:
    """Returns a chart that says that it has no figures."""
    note = text(WIDTH / 2, HEIGHT / 2, "nothing told", anchor="middle")
    return svg(WIDTH, HEIGHT, [note], label=f"{title}: nothing told", kind="chart")


def _gap(points: Sequence[Point], shown: Sequence[Point]) -> float:
    """Returns the pause that breaks a line: points that were left out leave longer ones."""
    return GAP_S * max(1.0, 2 * len(points) / len(shown)) if len(shown) < len(points) else GAP_S
