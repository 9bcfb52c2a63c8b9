"""A chart of one transaction's attempts: when each began and ended, from the first cut to the commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from coordinator.operating.ui.charts.svg import LABEL_HEIGHT, Svg, label_width, rectangle, rule, svg, text

WIDTH, ROW = 1160.0, 24.0
_TOP, _BOTTOM, _RIGHT = 20.0, 20.0, 6.0


@dataclass(frozen=True, slots=True)
class AttemptBar:
    """An attempt.

    Attributes:
        name: written at the left.
        begin, end: seconds since the epoch.
        kind: its class, which gives it a colour.
        note: drawn inside the bar if it fits, else next to it.
    """

    name: str
    begin: float
    end: float
    kind: str
    note: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the life of the transaction."""

    name: str
    at: float


def attempt_chart(
    title: str, bars: Sequence[AttemptBar], marks: Sequence[Mark], *, said: Callable[[float], str]
) -> Svg | None:
    """Returns the chart, None if there is nothing to draw.

    Args:
        title: what it shows.
        bars: from top to bottom.
        marks: ascending; a name that would overlap the one before it moves down a line.
        said: formats a number of seconds.
    """
    times = [bar.begin for bar in bars] + [bar.end for bar in bars] + [mark.at for mark in marks]
    if not bars or not times:
        return None
    begin, end = min(times), max(times)
    left = max(label_width(bar.name) for bar in bars) + 10
    lines = list(_placed(marks, begin, end, left))
    top = _TOP + LABEL_HEIGHT * max((line for _, _, line in lines), default=0)
    height = top + ROW * len(bars) + _BOTTOM
    parts = []
    for mark, x, line in lines:
        parts.append(rule(x, LABEL_HEIGHT * (line + 1), x, height - _BOTTOM, kind="mark"))
        parts.append(text(_mark_x(mark.name, x, left), LABEL_HEIGHT * (line + 1) - 3, mark.name, anchor="middle"))
    for row, bar in enumerate(bars):
        parts += _bar(bar, begin, end, left, top + ROW * row)
    parts.append(text(left, height - 4, "0 s"))
    parts.append(text(WIDTH - _RIGHT, height - 4, said(end - begin), anchor="end"))
    told = "; ".join(f"{bar.name}: {bar.note}, {said(bar.end - bar.begin)}" for bar in bars)
    return svg(WIDTH, height, parts, label=f"{title}. {told}", kind="attempts")


def _x(at: float, begin: float, end: float, left: float) -> float:
    return left + (at - begin) / (end - begin) * (WIDTH - _RIGHT - left) if end > begin else left


def _mark_x(name: str, x: float, left: float) -> float:
    """Returns the middle of a mark's name, which must not leave the drawing."""
    half = label_width(name) / 2
    return min(max(x, left + half), WIDTH - half)


def _placed(marks: Sequence[Mark], begin: float, end: float, left: float) -> Iterator[tuple[Mark, float, int]]:
    """Yields each mark with its place and the line of its name: the first where it overlaps no other name."""
    ends: list[float] = []
    for mark in marks:
        x = _x(mark.at, begin, end, left)
        middle, half = _mark_x(mark.name, x, left), label_width(mark.name) / 2
        line = next((number for number, taken in enumerate(ends) if taken + 6 <= middle - half), len(ends))
        ends[line : line + 1] = [middle + half]
        yield mark, x, line


def _bar(bar: AttemptBar, begin: float, end: float, left: float, y: float) -> Iterator[str]:
    x = _x(bar.begin, begin, end, left)
    width = max(2.0, _x(bar.end, begin, end, left) - x)
    yield text(left - 10, y + 15, bar.name, anchor="end")
    yield rectangle(x, y + 4, width, ROW - 8, kind=f"attempt {bar.kind}", title=bar.note, radius=2)
    wide = label_width(bar.note)
    if wide + 12 <= width:
        yield text(x + 6, y + 15.5, bar.note, kind="label on-bar")
    elif x + width + 6 + wide <= WIDTH:
        yield text(x + width + 6, y + 15.5, bar.note)
    elif x - 6 - wide >= left:
        yield text(x - 6, y + 15.5, bar.note, anchor="end")
