"""``txbatch drop``: deletes everything that a topology owns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from coordinator.operating.cli.command import AsJson, ServerOptions, TopologyId, Yes, command, option
from coordinator.operating.cli.terminal import ask, say, say_json
from state.errors import StateRefusedError, TopologyError
from state.keys import check_name
from state.printable import counted, one_line
from state.redis_admin.topology import RedisTopology
from state.troubles import Trouble
from state.values.shards import SHARDS_MAX

SHOWN = 5
"""How many keys a sentence names at most."""


@command
def drop(
    *,
    topology_id: TopologyId,
    also: Annotated[
        list[str] | None,
        option("--also", metavar="STATE", help="Delete this state, too, if no record declares it; may be repeated."),
    ] = None,
    shards: Annotated[
        int | None,
        option("--shards", metavar="N", min=2, max=SHARDS_MAX, help="How many shards it had, if its record is lost."),
    ] = None,
    typed: ServerOptions,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete a topology's state and everything txbatch stores about it.

    Other keys that share its cluster slot are left and listed: what the topology has never declared is not its own.
    """
    for name in also or ():
        check_name("state", name)
    server = typed.choice()
    with server.store(topology_id) as store:
        runs = store.connected_runs()
        found = _found(store) + ("; it is running" if runs else "")
        if not (yes or ask(f"delete all state of topology {topology_id!r} ({found}) on {server}?")):
            raise TopologyError(f"topology {topology_id!r} was kept")
        more = "" if shards or store.has_records() else "; shards that no record names are dropped with --shards N"
        dropped = store.drop(also or (), shards or 0)
    left = keys_left(dropped.left) + more
    if not dropped.deleted:
        raise TopologyError(f"topology {topology_id!r} is not stored on {server}; nothing was deleted{left}").about(
            Trouble.UNKNOWN_TOPOLOGY
        )
    if as_json:
        say_json({"topology": topology_id, "deleted_keys": dropped.deleted, "left_keys": dropped.left})
        return
    stopped = "; it was running: that run stops at its next write, with exit code 3" if runs else ""
    say(f"topology {topology_id!r} was dropped: {counted(dropped.deleted, 'key')} deleted on {server}{stopped}{left}")


def keys_left(left: Sequence[str]) -> str:
    """Returns the end of a sentence that names keys which do not belong to the topology; "" if there are none."""
    if not left:
        return ""
    more = f" and {len(left) - SHOWN:,} more" if len(left) > SHOWN else ""
    named = ", ".join(one_line(repr(key), 100) for key in left[:SHOWN])
    return f"; {counted(len(left), 'key')} left that the topology has not declared: {named}{more}"


def _found(store: RedisTopology) -> str:
    """Returns the stored state in words; damaged state is allowed, since dropping is its remedy."""
    try:
        seen = store.overview()
    except StateRefusedError as error:
        return f"it cannot be read: {error}"
    return "state without a control key" if seen is None else f"committed up to txid {seen.committed_txid:,}"
