"""Runs a transaction again from its stored metadata, in one process, and commits nothing.

It works like a run after a crash: metadata is stored, the transaction is not committed, so the spout emits exactly that
batch again. Here, however, the server is in memory, and is dropped afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from coordinator.sources.data_frame_batches import DataFrameBatches
from coordinator.sources.micro_batches import MicroBatches
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_description import described
from coordinator.transactional.assembly import has_external_effects
from coordinator.transactional.machine.metadata_log import COORDINATOR_SCOPE, REPUBLISHED_SCOPE
from coordinator.transactional.options import RunOptions
from coordinator.trying.dry_run import DryBatch, whole_batch
from state.errors import TopologyError
from state.keys import metadata_field, parse_metadata_field
from state.records.topology_overview import FoundTopology
from state.records.transaction_history import KnownTransaction
from state.redis_owner.store import RedisStore

NONCE = "0" * 32


def why_not(topology: Topology, known: KnownTransaction) -> str:
    """Returns why a transaction cannot be run again; "" if it can."""
    return _why_not_with(topology) or _why_not(known)


def _why_not_with(topology: Topology) -> str:
    spec = topology.spout.spec
    kind = f"its spout, a {type(spec).__name__},"
    if SpoutKind(spec).is_opaque:
        return f"{kind} is opaque: asked again, it cuts another batch"
    if isinstance(spec, (DataFrameBatches, MicroBatches)):
        return f"{kind} is fed by a Spark session, whose rows are not at hand"
    if has_external_effects(topology):
        return "a committer has external effects, which would happen again"
    return ""


def _why_not(known: KnownTransaction) -> str:
    txid = known.txid
    if known.is_republication:
        return f"txid {txid} republished what had been set aside, which is no longer stored"
    if known.story is not None and known.story.set_aside:
        return f"txid {txid} was committed empty: `txbatch quarantine show` has its batch"
    if not known.is_committed and not known.metadata:
        return f"txid {txid} is not cut yet: the last committed one is {known.committed_txid}"
    if COORDINATOR_SCOPE in known.left_out:
        return f"its metadata, {known.left_out[COORDINATOR_SCOPE]:,} bytes, was too long to be kept"
    if COORDINATOR_SCOPE not in known.metadata:
        begins = "there is no history" if known.history_from is None else f"the history begins at {known.history_from}"
        return f"its metadata is no longer kept: {begins}"
    return ""


def rerun_dry(
    topology: Topology, known: KnownTransaction, before: KnownTransaction, stored: FoundTopology
) -> Iterator[DryBatch]:
    """Returns an iterator that runs a transaction again, on this thread, with all effects of user code.

    Args:
        topology: the topology from the factory, with the same input.
        known: the record of the transaction.
        before: the record of the transaction below it.
        stored: the stored topology; its input and its republished batches are used.

    Raises:
        TopologyError: the transaction cannot be run again; see `why_not`.
        TransactionError: from the iterator, if the transaction fails, as an attempt of a run would.
    """
    if why := why_not(topology, known):
        raise TopologyError(f"txid {known.txid} of topology {topology.topology_id!r} cannot be run again: {why}")
    entries = _entries(known, before, stored.metadata)
    return _run_again(topology, known.txid, stored.source_fingerprint, entries)


def _run_again(topology: Topology, txid: int, source: str, entries: Mapping[str, Any]) -> Iterator[DryBatch]:
    topology = replace(topology, shard_count=1)  # nothing is committed, and nothing is read
    options = RunOptions(
        last_txid=txid,
        notifies_spout=False,
        adopt="unchecked",
        accept_state_changes=True,
        max_attempts=1,
        history=0,
        commit_group_max=1,
    )
    with LocalCluster() as cluster:
        _seed(cluster, topology, txid, source, entries)
        run = cluster.submit(topology, options=options)
        run.hold("commit")
        yield from whole_batch(run, topology, txid)


def _entries(known: KnownTransaction, before: KnownTransaction, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metadata fields that a server would hold just before the transaction is committed."""
    entries = {metadata_field(scope, known.txid): value for scope, value in known.metadata.items()}
    if known.txid > 1:
        below = {COORDINATOR_SCOPE: known.metadata[COORDINATOR_SCOPE], **before.metadata}
        entries |= {metadata_field(scope, known.txid - 1): value for scope, value in below.items()}
    earlier = {name: parse_metadata_field(name) for name in stored}
    return entries | {
        name: stored[name]
        for name, (scope, txid) in earlier.items()
        if scope == REPUBLISHED_SCOPE and txid < known.txid
    }


def _seed(cluster: LocalCluster, topology: Topology, txid: int, source: str, entries: Mapping[str, Any]) -> None:
    store = RedisStore("redis://memory", topology.topology_id, client=cluster.client)
    store.check_server()
    store.acquire(nonce=NONCE, new_generation=NONCE, topology=described(topology), source_fingerprint=source)
    store.store_metadata(entries)
    cluster.client.hset(store.keys.control, "committed", str(txid - 1))
