"""The report of a run: its figures, what each component did, and plots of its course."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinated_bolt.watching.metrics import ComponentMetrics
from coordinator.watching.reports.run_history import RunHistory
from coordinator.watching.reports.run_plots import NOT_INSTALLED, figure_of, packed_figure
from state.html_tables import Markup, paragraph, section, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """What a run did: tables, and plots if matplotlib is installed; made by ``statistics.report()``.

    A notebook shows it; `save` writes it to a file. Times are seconds since the run's first wave.

    Attributes:
        title: names the run.
        figures: (name, value) of each figure.
        done: what the run counts as a result.
        failing: what may fail.
        components: component id -> what it did.
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
            path: its suffix decides what is written: .html for a page with everything in it, .png, .svg or .pdf for
                the plots.

        Raises:
            ValueError: the suffix is none of these.
            ModuleNotFoundError: plots need matplotlib, and it is not installed.
            OSError: the file cannot be written.
        """
        file = Path(path)
        form = file.suffix.removeprefix(".").lower()
        if form == "html":
            page = _PAGE.format(title=escape(self.title), body=self._repr_html_())
            file.write_text(page, encoding="utf-8")
        elif form in PICTURES:
            file.write_bytes(packed_figure(self._figure(), form))
        else:
            raise ValueError(f"path {str(path)!r} ends in none of .html, .{', .'.join(PICTURES)}; give one of these")
        return file

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in self.figures)
        return f"RunReport({self.title!r}: {shown})"

    def _repr_html_(self) -> str:
        return tables_of(self.title, self.figures, self.components) + self._plots()

    def _figure(self) -> Figure:
        return figure_of(self.done, self.failing, self.history, self.components)

    def _plots(self) -> Markup:
        try:
            figure = self._figure()
        except ModuleNotFoundError:
            return paragraph(NOT_INSTALLED)
        content = base64.b64encode(packed_figure(figure, "svg")).decode("ascii")
        what = escape(
            f"Plots of {self.title}: {self.done} over time, wave times, tuples by component, failed {self.failing}"
        )
        return Markup(f'<p><img alt="{what}" src="data:image/svg+xml;base64,{content}"/></p>')


def tables_of(title: str, figures: Figures, components: Mapping[str, ComponentMetrics]) -> str:
    """Returns the figures of a run, and below them those of each component."""
    parts: list[Markup] = [table((), figures, caption=title)]
    if components:
        parts.append(table(_HEADERS, _component_rows(components)))
    return section(*parts)


def _component_rows(components: Mapping[str, ComponentMetrics]) -> Iterator[tuple[Any, ...]]:
    """Yields what each component did, under the headers of the table."""
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
