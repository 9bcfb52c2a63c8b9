"""``txbatch status``: what is stored about a topology, and what its run is doing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from coordinator.operating.cli.command import AsJson, ServerOptions, TopologyId, command
from coordinator.operating.cli.run_lines import run_details, run_line, watch_line
from coordinator.operating.cli.terminal import console, say, say_json
from coordinator.server_choice import ServerChoice
from coordinator.topology.building.topology_description import summary
from coordinator.watching.durations import duration
from state.errors import StateUnreachableError
from state.printable import SENTENCE_LIMIT, counted, message_of, one_line
from state.records.durability import DurabilityLevel, confirmed_line
from state.records.run_pulse import RunPulse, Standing
from state.records.topology_overview import TopologyOverview
from state.redis_admin.topology import RedisTopology

LOOK_EVERY_S = 1.0
LINE_EVERY_S = 5.0
STYLES = {Standing.RUNNING: "green", Standing.SILENT: "red", Standing.ENDED: "bold", Standing.UNKNOWN: "yellow"}


STORED = (
    *("topology_id", "committed_txid", "generation", "fence", "topology", "source_fingerprint", "metadata_count"),
    *("quarantined_count", "last_receipt", "is_dropping", "durable"),
)
"""Stored fields that --json shows."""


@command
def status(
    *,
    topology_id: TopologyId,
    typed: ServerOptions,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep showing what the run does, until it ends or Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is committed, and what the topology's run is doing: where, since when, how fast."""
    server = typed.choice()
    with server.store(topology_id) as store:
        if watch:
            watch_status(topology_id, lambda: look_at(store, server), as_json=as_json)
            return
        found = look_at(store, server)
    if as_json:
        say_json(plain(found))
        return
    say(*(typed.completed(one_line(line, SENTENCE_LIMIT)) for line in lines(found, server)))


def look_at(store: RedisTopology, server: ServerChoice) -> TopologyOverview:
    seen = store.overview(with_samples=True)
    if seen is None:
        raise server.unknown_topology(store.keys.topology_id, hint=": `txbatch list` shows what is there")
    return seen


def plain(seen: TopologyOverview) -> dict[str, Any]:
    run = None if seen.pulse is None else seen.pulse.to_dict()
    stored = asdict(replace(seen, pulse=None))
    shown = {name: stored[name] for name in STORED}
    return {**shown, "server_can_lose": seen.gives.can_lose(), "standing": seen.standing, "run": run}


def lines(seen: TopologyOverview, server: ServerChoice) -> list[str]:
    standing, pulse = seen.standing, seen.pulse
    shown = [("committed", f"up to txid {seen.committed_txid:,}"), ("run", run_line(pulse, standing, seen.at))]
    if pulse is not None:
        shown += run_details(pulse, seen.at)
    shown += [
        ("stored metadata", f"{seen.metadata_count:,} entries"),
        ("generation", seen.generation),
        ("fence", seen.fence),
        ("topology", summary(seen.topology)),
        ("source", seen.source_fingerprint),
        *_receipt(seen),
    ]
    if seen.quarantined_count:
        aside = counted(seen.quarantined_count, "txid")
        shown.append(("quarantined", f"{aside}: see `txbatch quarantine list {seen.topology_id}`"))
    shown += [("confirmed", confirmed_line(level, txid)) for level, txid in seen.durable.items()]
    synced = seen.durable.get(DurabilityLevel.FSYNC, 0)
    can_lose = seen.gives.can_lose_of(committed_txid=seen.committed_txid, synced_txid=synced)
    shown.append(("can be lost", can_lose))
    if seen.is_dropping:
        shown.append(("", f"a drop was not finished: run `txbatch drop {seen.topology_id}` again"))
    return [
        f"{seen.topology_id} on {server}",
        *(f"  {name:<17} {text}" if name else f"  {text}" for name, text in shown),
    ]


def _receipt(seen: TopologyOverview) -> list[tuple[str, str]]:
    receipt = seen.last_receipt
    if receipt is None:
        return []
    levels = [level for level, txid in seen.durable.items() if txid >= receipt.last_txid]
    text = (
        f"attempt {receipt.attempt_id:016x}, group {receipt.first_txid:,} to {receipt.last_txid:,}, digest "
        f"{receipt.digest}, durability {' and '.join(map(_level, levels)) or 'memory'}"
    )
    return [("last receipt", text)]


def _level(level: str) -> str:
    return f"{level} (the service's contract, as the run's user said)" if level == DurabilityLevel.SERVICE else level


def watch_status(
    topology_id: str,
    look: Callable[[], TopologyOverview],
    *,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Shows a topology until its run has ended, or once if none is running; Ctrl-C ends it too.

    After the first look, it waits for a server that is away.
    """
    screen = console()
    try:
        if as_json:
            _repeat(look, lambda seen: say_json(plain(seen), flush=True), LOOK_EVERY_S, sleep)
        elif screen.is_terminal and not screen.is_dumb_terminal:
            first = look()
            with Live(view(first), console=screen, auto_refresh=False) as live:
                _repeat(look, lambda seen: live.update(view(seen), refresh=True), LOOK_EVERY_S, sleep)
        else:
            _repeat(look, lambda seen: say(f"{topology_id}: {_line(seen)}", flush=True), LINE_EVERY_S, sleep)
    except KeyboardInterrupt:
        return


def _repeat(
    look: Callable[[], TopologyOverview],
    show: Callable[[TopologyOverview], None],
    every_s: float,
    sleep: Callable[[float], None],
) -> None:
    seen = look()
    while True:  # ends with the run, which Ctrl-C does not wait for
        show(seen)
        if seen.standing is not Standing.RUNNING:
            return
        sleep(every_s)
        seen = _look_again(look, sleep)


def _look_again(look: Callable[[], TopologyOverview], sleep: Callable[[float], None]) -> TopologyOverview:
    """Looks at a topology again; waits for a server that is away."""
    while True:  # until the reader gives up
        try:
            return look()
        except StateUnreachableError as error:
            say(f"txbatch: {message_of(error)}; still watching, Ctrl-C ends it", to=sys.stderr, flush=True)
            sleep(LINE_EVERY_S)


def _line(seen: TopologyOverview) -> str:
    return watch_line(seen.pulse, seen.standing, seen.committed_txid, seen.at)


def view(seen: TopologyOverview) -> RenderableType:
    heading = Text.assemble(
        (seen.topology_id, "bold"), "  ", (_state_of(seen), STYLES[seen.standing]), f"  {_since(seen)}"
    )
    figures = Table.grid(padding=(0, 2))
    figures.add_column(style="dim", no_wrap=True)
    figures.add_column()
    figures.add_row("committed", f"up to txid {seen.committed_txid:,}")
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


def _state_of(seen: TopologyOverview) -> str:
    if seen.standing is Standing.RUNNING:
        return "running" if seen.pulse is None else str(seen.pulse.now.state)
    return str(seen.standing) if seen.pulse is None or seen.standing is Standing.SILENT else str(seen.pulse.now.state)


def _since(seen: TopologyOverview) -> str:
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
