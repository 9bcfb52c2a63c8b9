"""``txbatch status``: what is stored about a topology, and what its run is doing."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from coordinator.building.topology_description import summary
from coordinator.cli.command_options import (
    AllowPlaintext,
    AsJson,
    DataDir,
    Debug,
    Redis,
    TopologyId,
    server_of_command,
)
from coordinator.cli.commands.run_lines import run_details, run_line
from coordinator.cli.commands.status_watch import watch_status
from coordinator.cli.streams.terminal import say, say_json
from coordinator.cli.suggestions import server_options, with_server_options
from coordinator.server_choice import ServerChoice
from state.errors import TopologyError
from state.printable import SENTENCE_LIMIT, counted, one_line
from state.records.durability import DurabilityLevel, ServerDurability
from state.records.run_pulse import RunPulse, Standing, owners, standing_of
from state.records.stored_topology import TopologyStatus
from state.redis_topology.topology import RedisTopology
from state.troubles import Trouble


@dataclass(frozen=True, slots=True)
class Seen:
    """A topology, as `status` shows it.

    Attributes:
        stored: what is stored about it.
        gives: what the server does for its data, as it is set now.
        pulse: what the run that owns it has told, None if it tells nothing.
        connected: its runs that are connected.
        at: when it was looked at, seconds since the epoch.
    """

    stored: TopologyStatus
    gives: ServerDurability
    pulse: RunPulse | None
    connected: int
    at: float

    @property
    def standing(self) -> Standing:
        """What to conclude about its last run."""
        return standing_of(self.pulse, now=self.at, connected=self.connected)


def status(
    *,
    topology_id: TopologyId,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep showing what the run does, until it ends or Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what is committed, and what the topology's run is doing: where, since when, how fast."""
    with server_of_command(redis, data_dir, allow_plaintext=allow_plaintext, debug=debug) as server:
        with server.store(topology_id) as store:
            if watch:
                watch_status(topology_id, lambda: seen(store, server), as_json=as_json, to_dict=plain)
                return
            found = seen(store, server)
        if as_json:
            say_json(plain(found))
            return
        options = server_options(redis, data_dir)
        said = (one_line(line, SENTENCE_LIMIT) for line in lines(found, server))
        say(*(with_server_options(line, options) for line in said))


def seen(store: RedisTopology, server: ServerChoice) -> Seen:
    """Looks at a topology.

    Raises:
        TopologyError: nothing is stored.
        StateError: the server cannot be used or reached.
    """
    stored = store.status()
    if stored is None:
        raise TopologyError(
            f"topology {store.keys.topology_id!r} is not stored on {server}; check the topology id and the server: "
            "`txbatch list` shows what is there"
        ).about(Trouble.UNKNOWN_TOPOLOGY)
    return Seen(
        stored, store.server_durability(), owners(store.pulse(), stored.fence), store.connected_runs(), time.time()
    )


def plain(found: Seen) -> dict[str, Any]:
    """Returns the fields of the line of JSON."""
    run = None if found.pulse is None else found.pulse.to_dict()
    stored = dataclasses.asdict(found.stored)
    return {**stored, "server_can_lose": found.gives.can_lose(), "standing": found.standing, "run": run}


def lines(found: Seen, server: ServerChoice) -> list[str]:
    """Returns what is shown, line by line."""
    status, standing, pulse = found.stored, found.standing, found.pulse
    shown = [("committed", f"up to txid {status.committed_txid:,}"), ("run", run_line(pulse, standing, found.at))]
    if pulse is not None:
        shown += run_details(pulse, found.at)
    shown += [
        ("stored metadata", f"{status.metadata_count:,} entries"),
        ("generation", status.generation),
        ("fence", status.fence),
        ("topology", summary(status.topology)),
        ("source", status.source_fingerprint),
        *_receipt(status),
    ]
    if status.quarantined_count:
        aside = counted(status.quarantined_count, "txid")
        shown.append(("quarantined", f"{aside}: see `txbatch quarantine list {status.topology_id}`"))
    shown += [("confirmed", f"up to txid {txid:,} at durability {level}") for level, txid in status.durable.items()]
    synced = status.durable.get(DurabilityLevel.FSYNC, 0)
    can_lose = found.gives.can_lose_of(committed_txid=status.committed_txid, synced_txid=synced)
    shown.append(("can be lost", can_lose))
    if status.is_dropping:
        shown.append(("", f"a drop was not finished: run `txbatch drop {status.topology_id}` again"))
    return [
        f"{status.topology_id} on {server}",
        *(f"  {name:<17} {text}" if name else f"  {text}" for name, text in shown),
    ]


def _receipt(status: TopologyStatus) -> list[tuple[str, str]]:
    receipt = status.last_receipt
    if receipt is None:
        return []
    levels = [level for level, txid in status.durable.items() if txid >= receipt.last_txid]
    text = (
        f"attempt {receipt.attempt_id:016x}, group {receipt.first_txid:,} to {receipt.last_txid:,}, digest "
        f"{receipt.digest}, durability {' and '.join(levels) or 'memory'}"
    )
    return [("last receipt", text)]
