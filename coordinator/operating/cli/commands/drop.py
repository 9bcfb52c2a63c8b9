"""``txbatch drop``: deletes everything that is stored of a topology."""

from __future__ import annotations

from coordinator.operating.cli.command import ServerOptions, TopologyId, Yes, command
from coordinator.operating.cli.terminal import ask, say
from state.errors import StateRefusedError, TopologyError
from state.printable import counted
from state.redis_topology.topology import RedisTopology
from state.troubles import Trouble


@command
def drop(*, topology_id: TopologyId, typed: ServerOptions, yes: Yes = False) -> None:
    """Delete a topology's state and everything txbatch stores about it."""
    server = typed.choice()
    with server.store(topology_id) as store:
        runs = store.connected_runs()
        found = _found(store) + ("; it is running" if runs else "")
        if not (yes or ask(f"delete all state of topology {topology_id!r} ({found}) on {server}?")):
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
