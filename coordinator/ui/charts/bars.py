"""Bars next to the figures of a table: a share of the largest, and a whole divided by kind."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.ui.charts.svg import Svg, rectangle, svg

WIDTH = 100.0


def share_bar(part: float) -> Svg:
    """Returns a bar as long as a share, from 0 to 1; the figure is next to it."""
    shown = min(1.0, max(0.0, part))
    bar = [rectangle(0, 0, WIDTH * shown, 6, kind="share")] if shown else []
    return svg(WIDTH, 6, [rectangle(0, 0, WIDTH, 6, kind="rest"), *bar], label="", kind="bar", is_stretched=True)


def split_bar(parts: Sequence[tuple[str, str, float]]) -> Svg:
    """Returns one bar of several parts, each as long as its share.

    Args:
        parts: (name, class, how many).
    """
    whole = sum(count for _, _, count in parts)
    shown = [rectangle(0, 0, WIDTH * 4, 14, kind="rest")]
    x = 0.0
    for name, kind, count in parts:
        width = 4 * WIDTH * count / whole if whole else 0.0
        if width:
            shown.append(rectangle(x, 0, width, 14, kind=kind, title=f"{count:,.0f} {name}"))
        x += width
    return svg(4 * WIDTH, 14, shown, label="", kind="split", is_stretched=True)
