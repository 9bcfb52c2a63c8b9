"""``txbatch drop``: deletes everything that is stored of a topology."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from coordinator.cli.command_options import AllowPlaintext, DataDir, Debug, Redis, TopologyId, command_errors
from coordinator.cli.streams.terminal import say
from coordinator.server_choice import ServerChoice, choose_server
from state.errors import StateRefusedError, TopologyError
from state.printable import counted
from state.redis_topology.topology import RedisTopology
from state.troubles import Trouble


def drop_topology(topology_id: str, server: ServerChoice, *, confirm: Callable[[str], bool] | None) -> None:
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
    say(f"topology {topology_id!r} was dropped: {counted(count, 'key')} deleted on {server}{stopped}")


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
    say(f"{question} [y/N] ", end="", to=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def drop(
    *,
    topology_id: TopologyId,
    redis: Redis = None,
    data_dir: DataDir = None,
    allow_plaintext: AllowPlaintext = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    debug: Debug = False,
) -> None:
    """Delete a topology's state and everything txbatch stores about it."""
    with command_errors(debug=debug, redis_url=redis, data_dir=data_dir):
        drop_topology(
            topology_id, choose_server(redis, data_dir, allow_plaintext=allow_plaintext), confirm=None if yes else ask
        )
