"""Refuses to start from stored metadata that has a hole.

The store's checksum already vouches for every entry. This is an independent check: there must be metadata of
consecutive transactions, from the last committed one on. Otherwise, a transaction whose predecessor is unknown would
be cut from the start of the input, and a hole would be taken for the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.spouts.kinds.partition_scopes import is_partition_scope, partition_scope
from state.errors import StateRefusedError
from state.troubles import Trouble


def check_coordinator_metadata(topology_id: str, metadata: Mapping[int, Any], *, committed_txid: int) -> None:
    """Checks that the spout's coordinator will find what it cut last; called once at start (driver).

    Args:
        topology_id: for the message.
        metadata: txid -> metadata of the spout's coordinator.
        committed_txid: last committed txid; its metadata must be there, because the next transaction is cut from it.

    Raises:
        StateRefusedError: an entry is missing.
    """
    if committed_txid and not metadata:
        raise StateRefusedError(
            f"topology {topology_id!r} is committed up to txid {committed_txid}, but its position in the input is not "
            "stored, because it was run with another kind of spout; run it with that one, start over with "
            f"`txbatch drop {topology_id}`, or choose another topology id"
        ).about(Trouble.OTHER_SOURCE)
    first = committed_txid or 1
    for txid in range(first, max(metadata, default=0) + 1):
        if txid not in metadata:
            raise _hole(topology_id, f"metadata of txid {txid}", metadata, committed_txid)


def check_scopes(topology_id: str, scopes: Mapping[str, Mapping[int, Any]]) -> None:
    """Checks that every other scope is that of a partition; called once at start (driver).

    Args:
        topology_id: for the message.
        scopes: scope -> txid -> metadata, without the coordinator's.

    Raises:
        StateRefusedError: a scope is not one that a spout writes.
    """
    for scope, by_txid in scopes.items():
        if not is_partition_scope(scope):
            raise StateRefusedError(
                f"topology {topology_id!r} has the metadata field '{scope}:{max(by_txid)}', which no spout writes; "
                f"other software wrote it: remove it, or start over with `txbatch drop {topology_id}`"
            ).about(Trouble.DAMAGED)


def check_partition_metadata(
    topology_id: str,
    partitions: Mapping[str, Mapping[int, Any]],
    counts: Mapping[int, Any],
    *,
    committed_txid: int,
) -> None:
    """Checks that every partition has metadata up to the same txid; called once at start (driver).

    Args:
        topology_id: for the message.
        partitions: scope -> txid -> metadata.
        counts: txid -> number of partitions.
        committed_txid: last committed txid.

    Raises:
        StateRefusedError: an entry is missing, or a stored number of partitions is not a number.
    """
    last_cut = max((txid for by_txid in partitions.values() for txid in by_txid), default=0)
    for txid in range(committed_txid or 1, max(last_cut, committed_txid) + 1):
        count = counts.get(txid)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise StateRefusedError(
                f"topology {topology_id!r} has {count!r} in its stored metadata field 'coordinator:{txid}', which is "
                "not a number of partitions, because it was run with another kind of spout; run it with that one, or "
                f"start over with `txbatch drop {topology_id}`"
            ).about(Trouble.OTHER_SOURCE)
        for partition in range(count):
            if txid not in partitions.get(partition_scope(partition), {}):
                raise _hole(topology_id, f"position of partition {partition} in txid {txid}", counts, committed_txid)


def _hole(topology_id: str, what: str, metadata: Mapping[int, Any], committed_txid: int) -> StateRefusedError:
    return StateRefusedError(
        f"topology {topology_id!r} is committed up to txid {committed_txid} and has metadata up to txid "
        f"{max(metadata)}, but the {what} is missing: the server has lost it; restore its data from a consistent "
        f"backup, or start over with `txbatch drop {topology_id}`"
    ).about(Trouble.DAMAGED)
