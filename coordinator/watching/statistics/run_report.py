"""The report of a run: its figures, each component's work, and plots of its course if matplotlib is installed."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.statistics.wave_statistics import RunHistory, RunPoint
from state.html_tables import Markup, paragraph, section, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import Locator


Figures = Sequence[tuple[str, Any]]
"""(name, value) of each figure, in the order to show them."""
_HEADERS = (
    "component",
    "batches",
    "executed",
    "emitted",
    "in failed attempts",
    "execute s",
    "finish s",
    "dead letters",
)
PICTURES = ("png", "svg", "pdf")
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"/><meta name="viewport" content="width=device-width"/><title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ padding: .2em .8em; border-bottom: 1px solid #8884; font-variant-numeric: tabular-nums; }}
img {{ max-width: 100%; background: #fff; }}
</style></head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True, slots=True, repr=False)
class RunReport:
    """A report of a run: tables, and plots if matplotlib is installed; made by ``statistics.report()``.

    A notebook displays it; `save` writes it to a file. Times are seconds since the run's first wave.

    Attributes:
        title: names the run.
        figures: (name, value) of each figure.
        done: the noun for the run's results, such as "committed transactions".
        failing: the noun for what may fail, such as "attempts".
        components: component id -> its work.
        history: the course of the run.
    """

    title: str
    figures: Figures
    done: str
    failing: str
    components: Mapping[str, ComponentMetrics]
    history: RunHistory

    def save(self, path: str | Path) -> Path:
        """Writes the report to a file and returns its path; an existing file is replaced.

        Args:
            path: its suffix decides the format: .html for a self-contained page, .png, .svg or .pdf for the plots.

        Raises:
            ValueError: the suffix is not one of these.
            ModuleNotFoundError: plots need matplotlib, and it is not installed.
            OSError: the file cannot be written.
        """
        file = Path(path)
        form = file.suffix.removeprefix(".").lower()
        if form == "html":
            page = _PAGE.format(title=escape(self.title), body=self._repr_html_())
            file.write_text(page, encoding="utf-8")
        elif form in PICTURES:
            file.write_bytes(packed_figure(figure_of(self), form))
        else:
            raise ValueError(f"path {str(path)!r} ends in none of .html, .{', .'.join(PICTURES)}; give one of these")
        return file

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in self.figures)
        return f"RunReport({self.title!r}: {shown})"

    def _repr_html_(self) -> str:
        return tables_of(self.title, self.figures, self.components) + self._plots()

    def _plots(self) -> Markup:
        try:
            figure = figure_of(self)
        except ModuleNotFoundError:
            return paragraph(NOT_INSTALLED)
        content = base64.b64encode(packed_figure(figure, "svg")).decode("ascii")
        what = escape(
            f"Plots of {self.title}: {self.done} over time, wave times, tuples by component, failed {self.failing}"
        )
        return Markup(f'<p><img alt="{what}" src="data:image/svg+xml;base64,{content}"/></p>')


def tables_of(title: str, figures: Figures, components: Mapping[str, ComponentMetrics]) -> str:
    """Returns the figures of a run, followed by those of each component."""
    parts: list[Markup] = [table((), figures, caption=title)]
    if components:
        parts.append(table(_HEADERS, _component_rows(components)))
    return section(*parts)


def _component_rows(components: Mapping[str, ComponentMetrics]) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of the table: each component's work."""
    for component_id, done in components.items():
        work = done.work
        yield (
            component_id,
            work.batches,
            sum(work.executed.values()),
            sum(work.emitted.values()),
            sum(done.failed.values()),
            Markup(f"{sum(work.execute_ns.values()) / 1e9:.3f}"),
            Markup(f"{work.finish_ns / 1e9:.3f}"),
            work.dead_letters,
        )


NOT_INSTALLED = "plots need matplotlib, which is not installed; run: pip install 'txbatch[notebook]'"
_DONE, _FAILED, _WAVE = "#1a7f37", "#cf222e", "#0969da"
_SINCE_START = "seconds since the first wave"


def figure_of(report: RunReport) -> Figure:
    """Returns four plots of a run: results over time, wave times, tuples by component, and failures.

    Raises:
        ModuleNotFoundError: matplotlib is not installed; the message has the remedy.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(NOT_INSTALLED, name=error.name) from error
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    ((results, waves), (tuples, failures)) = figure.subplots(2, 2)
    _draw_steps(results, report.history, report.done, _DONE)
    _draw_waves(waves, report.history)
    _draw_components(tuples, report.components)
    _draw_steps(failures, report.history, f"failed {report.failing}", _FAILED, is_failed=True)
    return figure


def packed_figure(figure: Figure, form: str) -> bytes:
    """Returns a figure as the content of a png, svg or pdf file; equal figures give equal bytes."""
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
