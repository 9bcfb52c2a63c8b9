"""Plots of a run's course; the only module that imports matplotlib.

Figures are made without pyplot, so nothing opens a window or touches the settings of the user's own plots.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.reports.run_history import RunHistory, RunPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator

NOT_INSTALLED = "plots need matplotlib, which is not installed; run: pip install 'txbatch[notebook]'"
_DONE, _FAILED, _WAVE = "#1a7f37", "#cf222e", "#0969da"
_SINCE_START = "seconds since the first wave"


def figure_of(done: str, failing: str, history: RunHistory, components: Mapping[str, ComponentMetrics]) -> Figure:
    """Returns four plots of a run: results over time, wave times, tuples by component, and failures.

    Args:
        done: what is counted as a result, such as "committed transactions".
        failing: what may fail, such as "attempts".
        history: the course of the run.
        components: component id -> what it did.

    Raises:
        ModuleNotFoundError: matplotlib is not installed; the message says what to do.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(NOT_INSTALLED, name=error.name) from error
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    ((results, waves), (tuples, failures)) = figure.subplots(2, 2)
    _draw_steps(results, history, done, _DONE)
    _draw_waves(waves, history)
    _draw_components(tuples, components)
    _draw_steps(failures, history, f"failed {failing}", _FAILED, is_failed=True)
    return figure


def packed_figure(figure: Figure, form: str) -> bytes:
    """Returns a figure as the content of a file: png, svg or pdf; equal figures give equal bytes."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "txbatch"}):
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
        figure.savefig(content, format=form, dpi=120, metadata=metadata)
    return content.getvalue()


def _draw_steps(axes: Axes, history: RunHistory, title: str, colour: str, *, is_failed: bool = False) -> None:
    moments = [RunPoint(0.0, 0, 0), *history.moments.points()]
    axes.step(
        [moment.since_start_s for moment in moments],
        [moment.failed if is_failed else moment.done for moment in moments],
        where="post",
        color=colour,
    )
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
    axes.yaxis.set_major_locator(_whole_numbers())
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _finish(axes, title, _SINCE_START)


def _draw_waves(axes: Axes, history: RunHistory) -> None:
    ended = history.waves.points()
    axes.plot(
        [wave.since_start_s for wave in ended],
        [wave.seconds for wave in ended],
        ".",
        color=_WAVE,
        markersize=4,
    )
    axes.set_ylim(bottom=0)
    _finish(axes, "seconds a wave", _SINCE_START)


def _draw_components(axes: Axes, components: Mapping[str, ComponentMetrics]) -> None:
    names = [*components][::-1]  # the first is drawn at the bottom
    counts = [
        sum(components[name].work.executed.values()) or sum(components[name].work.emitted.values()) for name in names
    ]
    axes.barh(range(len(names)), counts, color=_WAVE)
    axes.set_yticks(range(len(names)), labels=names, parse_math=False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_major_locator(_whole_numbers())
    _finish(axes, "tuples by component", "executed; of a spout, emitted")


def _whole_numbers() -> Locator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5, integer=True)


def _finish(axes: Axes, title: str, x_label: str) -> None:
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel(x_label, fontsize=9)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#d0d7de", linewidth=0.5)
    axes.set_xlim(left=0)
