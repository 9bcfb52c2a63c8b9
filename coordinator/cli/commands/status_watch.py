"""``txbatch status --watch``: shows a run again and again, until it ends or the reader has seen enough."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from coordinator.cli.commands.run_lines import run_details, run_line, watch_line
from coordinator.cli.streams.terminal import console, say, say_json
from coordinator.reports.durations import duration
from state.errors import StateUnreachableError
from state.printable import one_line, said_by
from state.records.run_pulse import RunPulse, Standing
from state.records.stored_topology import TopologyStatus

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 5.0
STYLES = {Standing.RUNNING: "green", Standing.SILENT: "red", Standing.ENDED: "bold", Standing.UNTOLD: "yellow"}


class Looked(Protocol):
    """What a watch needs of what was seen; see `Seen`."""

    @property
    def stored(self) -> TopologyStatus: ...
    @property
    def pulse(self) -> RunPulse | None: ...
    @property
    def at(self) -> float: ...
    @property
    def standing(self) -> Standing: ...


def watch_status(
    topology_id: str,
    look: Callable[[], Any],
    *,
    as_json: bool,
    to_dict: Callable[[Any], dict[str, Any]],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Shows a topology until its run has ended, or was never there; Ctrl-C ends it too.

    Args:
        topology_id: of the topology.
        look: looks at it; returns a `Looked`.
        as_json: print a line of JSON a second.
        to_dict: makes the fields of such a line.
        sleep: waits, in seconds.

    Raises:
        TopologyError, StateError: it cannot be looked at; once it was, a server that is away is waited for.
    """
    screen = console()
    try:
        if as_json:
            _repeat(look, lambda seen: say_json(to_dict(seen), flush=True), LOOK_EVERY_S, sleep)
        elif screen.is_terminal and not screen.is_dumb_terminal:
            first = look()
            with Live(view(first), console=screen, auto_refresh=False) as live:
                _repeat(look, lambda seen: live.update(view(seen), refresh=True), LOOK_EVERY_S, sleep)
        else:
            _repeat(look, lambda seen: say(f"{topology_id}: {_line(seen)}", flush=True), LINE_EVERY_S, sleep)
    except KeyboardInterrupt:
        return


def _repeat(
    look: Callable[[], Any], show: Callable[[Any], None], every_s: float, sleep: Callable[[float], None]
) -> None:
    seen = look()
    while True:  # ends with the run, which Ctrl-C does not wait for
        show(seen)
        if seen.standing is not Standing.RUNNING:
            return
        sleep(every_s)
        seen = _look_again(look, sleep)


def _look_again(look: Callable[[], Any], sleep: Callable[[float], None]) -> Any:
    """Looks at a topology that was there a moment ago; waits for a server that is away."""
    while True:  # the reader decides how long
        try:
            return look()
        except StateUnreachableError as error:
            say(f"txbatch: {said_by(error)}; still watching, Ctrl-C ends it", to=sys.stderr, flush=True)
            sleep(LINE_EVERY_S)


def _line(seen: Looked) -> str:
    return watch_line(seen.pulse, seen.standing, seen.stored.committed_txid, seen.at)


def view(seen: Looked) -> RenderableType:
    """Returns what a terminal shows: a heading, the figures, and a table of components."""
    heading = Text.assemble(
        (seen.stored.topology_id, "bold"), "  ", (_state_of(seen), STYLES[seen.standing]), f"  {_since(seen)}"
    )
    figures = Table.grid(padding=(0, 2))
    figures.add_column(style="dim", no_wrap=True)
    figures.add_column()
    figures.add_row("committed", f"up to txid {seen.stored.committed_txid:,}")
    if seen.pulse is None or seen.standing is not Standing.RUNNING:
        figures.add_row("run", Text(run_line(seen.pulse, seen.standing, seen.at)))
    if seen.pulse is None:
        return Group(heading, figures)
    for name, text in run_details(seen.pulse, seen.at):
        figures.add_row(name, Text(text))
    parts: list[RenderableType] = [heading, figures]
    if seen.pulse.now.components:
        parts += [Text(), _components(seen.pulse)]
    return Group(*parts)


def _state_of(seen: Looked) -> str:
    if seen.standing is Standing.RUNNING:
        return "running" if seen.pulse is None else str(seen.pulse.now.state)
    return str(seen.standing) if seen.pulse is None or seen.standing is Standing.SILENT else str(seen.pulse.now.state)


def _since(seen: Looked) -> str:
    if seen.pulse is None:
        return ""
    run = seen.pulse.run
    return f"{duration(seen.at - run.started_at)} on {one_line(run.host)}, pid {run.pid}, as {one_line(run.user)}"


def _components(pulse: RunPulse) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("component", "tuples in", "tuples out", "failed", "refused", "busy"):
        table.add_column(heading, justify="left" if heading == "component" else "right", no_wrap=True)
    for name, done in pulse.now.components.items():
        counts = (done.tuples_in, done.tuples_out, done.failed, done.dead_letters)
        table.add_row(Text(one_line(name, 40)), *(f"{count:,}" for count in counts), f"{done.busy_s:,.1f} s")
    return table
