"""``txbatch status`` and ``txbatch drop``: what is stored about a topology, and its removal."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable

from coordinator.building.topology_description import summary
from coordinator.server_choice import ServerChoice
from state.errors import StateRefusedError, TopologyError
from state.printable import SENTENCE_LIMIT, one_line
from state.redis_topology import RedisTopology
from state.stored_topology import TopologyStatus


def show_status(topology_id: str, server: ServerChoice, *, as_json: bool) -> None:
    """Prints what is stored.

    Raises:
        TopologyError: nothing is.
        StateError: the server cannot be asked.
    """
    with server.store(topology_id) as store:
        status = store.status()
    if status is None:
        raise TopologyError(f"topology {topology_id!r} is unknown to {server}; check its id, and the server")
    if as_json:
        print(json.dumps(dataclasses.asdict(status)))
        return
    print("\n".join(one_line(line, SENTENCE_LIMIT) for line in _lines(status, server)))


def drop(topology_id: str, server: ServerChoice, *, confirm: Callable[[str], bool] | None) -> None:
    """Deletes every key of a topology and says how many went, and whether it was running.

    Args:
        topology_id: the topology.
        server: where it is.
        confirm: asks the user; None if he has agreed already.

    Raises:
        TopologyError: nothing is stored, or the user did not agree.
        StateError: the server cannot be asked.
    """
    with server.store(topology_id) as store:
        runs = store.connected_runs()
        found = _found(store)
        found += "; it is running" if runs else ""
        question = f"delete all state of topology {topology_id!r} ({found}) on {server}?"
        if confirm is not None and not confirm(question):
            raise TopologyError(f"topology {topology_id!r} is kept")
        count = store.drop()
    if not count:
        raise TopologyError(f"topology {topology_id!r} is unknown to {server}; nothing was deleted")
    stopped = "; it was running: that run stops at its next write, with exit code 3" if runs else ""
    print(f"topology {topology_id!r} is dropped: {count:,} keys deleted on {server}{stopped}")


def _found(store: RedisTopology) -> str:
    """What there is to drop; damage, which a drop is the remedy of, does not keep it from being dropped."""
    try:
        status = store.status()
    except StateRefusedError as error:
        return f"it cannot be read: {error}"
    return "state without a control key" if status is None else f"committed up to txid {status.committed_txid:,}"


def ask(question: str) -> bool:
    """Asks on the terminal.

    Raises:
        TopologyError: there is no terminal to ask on.
    """
    if not sys.stdin.isatty():
        raise TopologyError(f"{question} There is no terminal to ask on; give --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _lines(status: TopologyStatus, server: ServerChoice) -> list[str]:
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
        lines.append(
            f"  last receipt      attempt {receipt.attempt_id:016x}, group {receipt.first_txid:,} to "
            f"{receipt.last_txid:,}, digest {receipt.digest}"
        )
    if status.is_dropping:
        lines.append(f"  a drop was not finished: run `txbatch drop {status.topology_id}` again")
    return lines
