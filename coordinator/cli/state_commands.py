"""``txbatch status`` and ``txbatch drop``: show what is stored about a topology, and delete it."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable

from coordinator.building.topology_description import summary
from coordinator.cli.suggestions import with_server_options
from coordinator.server_choice import ServerChoice
from state.errors import StateRefusedError, TopologyError
from state.printable import SENTENCE_LIMIT, counted, one_line
from state.redis_topology import RedisTopology
from state.stored_topology import TopologyStatus
from state.troubles import Trouble


def show_status(topology_id: str, server: ServerChoice, *, as_json: bool, options: str = "") -> None:
    """Prints what is stored.

    Args:
        topology_id: of the topology to show.
        server: holds its state.
        as_json: print one line of JSON instead of text.
        options: the server options of the command, which suggested commands repeat.

    Raises:
        TopologyError: nothing is stored.
        StateError: the server cannot be used or reached.
    """
    with server.store(topology_id) as store:
        status = store.status()
        can_lose = store.server_can_lose()
    if status is None:
        raise TopologyError(
            f"topology {topology_id!r} is not stored on {server}; check the topology id and the server"
        ).about(Trouble.UNKNOWN_TOPOLOGY)
    if as_json:
        print(json.dumps({**dataclasses.asdict(status), "server_can_lose": can_lose}))
        return
    lines = (one_line(line, SENTENCE_LIMIT) for line in _lines(status, server, can_lose))
    print("\n".join(with_server_options(line, options) for line in lines))


def drop(topology_id: str, server: ServerChoice, *, confirm: Callable[[str], bool] | None) -> None:
    """Deletes every key of a topology, and prints how many there were and whether the topology was running.

    Args:
        topology_id: of the topology to delete.
        server: holds its state.
        confirm: asks the user; None deletes without asking.

    Raises:
        TopologyError: nothing is stored, or the user declined.
        StateError: the server cannot be used or reached.
    """
    with server.store(topology_id) as store:
        runs = store.connected_runs()
        found = _found(store)
        found += "; it is running" if runs else ""
        question = f"delete all state of topology {topology_id!r} ({found}) on {server}?"
        if confirm is not None and not confirm(question):
            raise TopologyError(f"topology {topology_id!r} was kept")
        count = store.drop()
    if not count:
        raise TopologyError(f"topology {topology_id!r} is not stored on {server}; nothing was deleted").about(
            Trouble.UNKNOWN_TOPOLOGY
        )
    stopped = "; it was running: that run stops at its next write, with exit code 3" if runs else ""
    print(f"topology {topology_id!r} was dropped: {counted(count, 'key')} deleted on {server}{stopped}")


def _found(store: RedisTopology) -> str:
    """Returns what there is to drop; damaged state can be dropped too, since dropping is its remedy."""
    try:
        status = store.status()
    except StateRefusedError as error:
        return f"it cannot be read: {error}"
    return "state without a control key" if status is None else f"committed up to txid {status.committed_txid:,}"


def ask(question: str) -> bool:
    """Asks on the terminal.

    Raises:
        TopologyError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise TopologyError(f"{question} Standard input is not a terminal to ask on; give --yes to delete")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _lines(status: TopologyStatus, server: ServerChoice, can_lose: str) -> list[str]:
    lines = [
        f"{status.topology_id} on {server}",
        f"  committed         up to txid {status.committed_txid:,}",
        f"  stored metadata   {status.metadata_count:,} entries",
        f"  generation        {status.generation}",
        f"  fence             {status.fence}",
        f"  topology          {summary(status.topology)}",
        f"  source            {status.source_fingerprint}",
    ]
    receipt = status.last_receipt
    if receipt is not None:
        levels = [level for level, txid in status.durable.items() if txid >= receipt.last_txid]
        durability = " and ".join(levels) or "memory"
        lines.append(
            f"  last receipt      attempt {receipt.attempt_id:016x}, group {receipt.first_txid:,} to "
            f"{receipt.last_txid:,}, digest {receipt.digest}, durability {durability}"
        )
    if status.quarantined_count:
        lines.append(
            f"  quarantined       {counted(status.quarantined_count, 'txid')}: see `txbatch quarantine list "
            f"{status.topology_id}`"
        )
    lines += [
        f"  confirmed         up to txid {txid:,} at durability {level}" for level, txid in status.durable.items()
    ]
    lines.append(f"  can be lost       a power cut may take from this server {can_lose}")
    if status.is_dropping:
        lines.append(f"  a drop was not finished: run `txbatch drop {status.topology_id}` again")
    return lines
