"""The few forms of SVG that all charts are made of, and bars for tables; text is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from state.printable import one_line

CHARACTER = 7.2
"""Widest character of a label, in units of the drawing: labels hold digits, units and short words."""
LABEL_HEIGHT = 14.0
BAR_WIDTH = 100.0


class Svg(str):
    """Text that is SVG already; templates put it in as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Tells templates that it is escaped."""
        return self


def svg(width: float, height: float, parts: Iterable[str], *, label: str, kind: str, is_stretched: bool = False) -> Svg:
    """Returns a drawing that a page scales to its column.

    Args:
        width: of the coordinate system.
        height: of the coordinate system.
        parts: the SVG inside.
        label: what it shows, in words, for screen readers; "" if the text next to it says the same.
        kind: its class.
        is_stretched: fill the column without keeping the proportions; for drawings without text.
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
    """Returns a rectangle, with a tooltip."""
    size = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    rounded = f' rx="{number(radius)}"' if radius else ""
    inside = f"><title>{words(title)}</title></rect>" if title else "/>"
    return f'<rect class="{kind}" {size}{rounded}{inside}'


def rule(x1: float, y1: float, x2: float, y2: float, *, kind: str = "grid") -> str:
    """Returns a straight line."""
    return f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def words(content: str) -> str:
    """Returns foreign text as one escaped line."""
    return escape(one_line(content))


def number(value: float) -> str:
    """Returns a coordinate, to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def label_width(content: str) -> float:
    """Returns an upper bound of a label's width."""
    return CHARACTER * len(one_line(content))


def share_bar(part: float) -> Svg:
    """Returns a bar as long as a share, from 0 to 1; the figure is next to it."""
    shown = min(1.0, max(0.0, part))
    bar = [rectangle(0, 0, BAR_WIDTH, 6, kind="rest")]
    if shown:
        bar.append(rectangle(0, 0, BAR_WIDTH * shown, 6, kind="share"))
    return svg(BAR_WIDTH, 6, bar, label="", kind="bar", is_stretched=True)


def split_bar(parts: Sequence[tuple[str, str, float]]) -> Svg:
    """Returns one bar of several parts, each as long as its share.

    Args:
        parts: (name, class, how many).
    """
    whole = sum(count for _, _, count in parts)
    shown = [rectangle(0, 0, 4 * BAR_WIDTH, 14, kind="rest")]
    x = 0.0
    for name, kind, count in parts:
        width = 4 * BAR_WIDTH * count / whole if whole else 0.0
        if width:
            shown.append(rectangle(x, 0, width, 14, kind=kind, title=f"{count:,.0f} {name}"))
        x += width
    return svg(4 * BAR_WIDTH, 14, shown, label="", kind="split", is_stretched=True)
