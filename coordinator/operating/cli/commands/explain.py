"""``txbatch explain``: what an error means, and what to do; the last line of every error names its entry."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer

from coordinator.operating.cli.command import command
from coordinator.operating.cli.terminal import say
from coordinator.operating.inspection.explanations import explanation_of, explanations, in_lines

WIDEST = 100
ERROR = typer.Argument(metavar="[ERROR]", help="As in the last line of an error. Without it, all of them are listed.")


@command
def explain(*, error: Annotated[str | None, ERROR] = None) -> None:
    """Explain an error: why it happens, how to find the cause, and what to do."""
    if error is None:
        say(*_list())
        return
    width = min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)
    entry = explanation_of(error)
    say(f"{entry.trouble}: {entry.title}", "", *in_lines(entry.text, width))


def _list() -> Iterator[str]:
    widest = max(len(entry.trouble) for entry in explanations())
    for chapter, entries in groupby(explanations(), key=lambda entry: entry.chapter):
        yield f"{chapter}:"
        yield from (f"  {entry.trouble:<{widest}}  {entry.title}" for entry in entries)
