"""The figures of a run as HTML tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coordinated_bolt.watching.metrics import ComponentMetrics
from state.html_tables import Markup, section, table

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


def tables_of(title: str, figures: Figures, components: Mapping[str, ComponentMetrics]) -> str:
    """Returns the figures of a run, and below them those of each component."""
    parts: list[Markup] = [table((), figures, caption=title)]
    if components:
        parts.append(table(_HEADERS, component_rows(components)))
    return section(*parts)


def component_rows(components: Mapping[str, ComponentMetrics]) -> Iterator[tuple[Any, ...]]:
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
