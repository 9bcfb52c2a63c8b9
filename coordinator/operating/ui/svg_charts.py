"""Charts as inline SVG: their elements, and the chart of a transaction's attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from state.printable import one_line

CHARACTER = 7.2
"""Width of the widest character in labels, in units of the drawing: labels hold digits, units and short words."""
LABEL_HEIGHT = 14.0
BAR_WIDTH = 100.0


class Svg(str):
    """Text that is SVG; templates insert it without escaping."""

    __slots__ = ()

    def __html__(self) -> str:
        """Returns the text itself, by which templates know that it is escaped."""
        return self


def svg(width: float, height: float, parts: Iterable[str], *, label: str, kind: str, is_stretched: bool = False) -> Svg:
    """Returns a drawing that a page scales to its column; a stretched drawing does not keep its proportions.

    The label is for screen readers, "" if the text next to the drawing says the same; the kind is its CSS class.
    """
    heard = f'role="img" aria-label="{words(label)}"' if label else 'aria-hidden="true"'
    stretch = ' preserveAspectRatio="none"' if is_stretched else ""
    head = f'<svg class="{kind}" viewBox="0 0 {number(width)} {number(height)}" {heard}{stretch}>'
    return Svg("".join((head, *parts, "</svg>")))


def text(x: float, y: float, content: str, *, kind: str = "label", anchor: str = "start") -> str:
    """Returns a line of text; `y` is its baseline."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}"{where}>{words(content)}</text>'


def rectangle(x: float, y: float, width: float, height: float, *, kind: str, title: str = "", radius: float = 0) -> str:
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    rounded = f' rx="{number(radius)}"' if radius else ""
    inside = f"><title>{words(title)}</title></rect>" if title else "/>"
    return f'<rect class="{kind}" {size}{rounded}{inside}'


def rule(x1: float, y1: float, x2: float, y2: float, *, kind: str = "grid") -> str:
    return f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def words(content: str) -> str:
    """Returns text from outside as one escaped line."""
    return escape(one_line(content))


def number(value: float) -> str:
    """Returns a coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def label_width(content: str) -> float:
    """Returns an upper bound of a label's width."""
    return CHARACTER * len(one_line(content))


def share_bar(part: float) -> Svg:
    """Returns a bar whose length shows a share from 0 to 1."""
    shown = min(1.0, max(0.0, part))
    bar = [rectangle(0, 0, BAR_WIDTH, 6, kind="rest")]
    if shown:
        bar.append(rectangle(0, 0, BAR_WIDTH * shown, 6, kind="share"))
    return svg(BAR_WIDTH, 6, bar, label="", kind="bar", is_stretched=True)


def split_bar(parts: Sequence[tuple[str, float]]) -> Svg:
    """Returns one bar of several parts, each as long as its share; a part's name is its CSS class."""
    whole = sum(count for _, count in parts)
    shown = [rectangle(0, 0, 4 * BAR_WIDTH, 14, kind="rest")]
    x = 0.0
    for name, count in parts:
        width = 4 * BAR_WIDTH * count / whole if whole else 0.0
        if width:
            shown.append(rectangle(x, 0, width, 14, kind=name, title=f"{count:,.0f} {name}"))
        x += width
    return svg(4 * BAR_WIDTH, 14, shown, label="", kind="split", is_stretched=True)


WIDTH, ROW = 1160.0, 24.0
_TOP, _BOTTOM, _RIGHT = 20.0, 20.0, 6.0


@dataclass(frozen=True, slots=True)
class AttemptBar:
    """The bar of an attempt, from begin to end in seconds since the epoch; the kind is its CSS class.

    The name is at the left, the note inside the bar if it fits, otherwise next to it.
    """

    name: str
    begin: float
    end: float
    kind: str
    note: str


@dataclass(frozen=True, slots=True)
class Mark:
    name: str
    at: float


def attempt_chart(
    title: str, bars: Sequence[AttemptBar], marks: Sequence[Mark], *, said: Callable[[float], str]
) -> Svg | None:
    """Returns the chart; None if there are no attempts.

    Marks are in ascending order; a name that would overlap another moves down a line. `said` formats seconds.
    """
    if not bars:
        return None
    times = [bar.begin for bar in bars] + [bar.end for bar in bars] + [mark.at for mark in marks]
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
    notes = "; ".join(f"{bar.name}: {bar.note}, {said(bar.end - bar.begin)}" for bar in bars)
    return svg(WIDTH, height, parts, label=f"{title}. {notes}", kind="attempts")


def _x(at: float, begin: float, end: float, left: float) -> float:
    return left + (at - begin) / (end - begin) * (WIDTH - _RIGHT - left) if end > begin else left


def _mark_x(name: str, x: float, left: float) -> float:
    """Returns the centre of a mark's name, so that the name stays inside the drawing."""
    half = label_width(name) / 2
    return min(max(x, left + half), WIDTH - half)


def _placed(marks: Sequence[Mark], begin: float, end: float, left: float) -> Iterator[tuple[Mark, float, int]]:
    """Yields each mark with its position and the line of its name: the first line where it overlaps no other name."""
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
