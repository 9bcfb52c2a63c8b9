"""A batch that is given up, and where it ends. Plain data, and pure functions.

To quarantine a batch, the run must know where it ends: the next one begins there. If the spout's coordinator cuts whole
batches, its metadata gives the end. If emitters cut, an attempt must have reported its part of each partition,
beginning where the batch below ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordinator.spouts.partition_cut import link_to, partition_of, partition_scope
from coordinator.transactional.machine.run_plan import RunPlan
from coordinator.transactional.machine.transaction_record import TransactionRecord
from state.commits.quarantine import BatchInput, PoisonCause
from state.errors import TransactionError


@dataclass(frozen=True, slots=True)
class Poison:
    """A transaction that failed too often because of its batch.

    Attributes:
        txid: the transaction's txid.
        batch: re-creates the batch.
        cause: the cause in the quarantine record.
        error: ends the run if the batch is not quarantined.
    """

    txid: int
    batch: BatchInput
    cause: PoisonCause
    error: TransactionError


def batch_input_of(
    record: TransactionRecord, plan: RunPlan, positions: Mapping[str, Mapping[int, Any]], *, number: int
) -> BatchInput | None:
    """Returns the input that re-creates a transaction's batch, or None if no attempt has reported where it ends.

    Args:
        record: the transaction's record.
        plan: has the kind of the spout.
        positions: scope -> txid -> metadata, also of all lower transactions, committed or not.
        number: the spout's number of the batch.
    """
    stored = {scope: by_txid[record.txid] for scope, by_txid in positions.items() if record.txid in by_txid}
    if not plan.has_partitions:
        return BatchInput(number, record.metadata, stored)
    below = {scope: _last_below(by_txid, record.txid) for scope, by_txid in positions.items()}
    cut = record.cut
    if plan.is_opaque:
        if cut is None or not _follows(cut.positions, cut.began_from, below):
            return None
        starts = {scope: below[scope] for scope in cut.positions if below.get(scope) is not None}
        return BatchInput(number, record.metadata, dict(cut.positions), starts)
    fresh = {} if cut is None else {s: position for s, position in cut.positions.items() if s not in stored}
    if fresh and cut is not None and not _follows(fresh, cut.began_from, below):
        return None
    whole = stored | fresh
    is_known = all(partition_scope(partition) in whole for partition in range(record.metadata))
    return BatchInput(number, record.metadata, whole) if is_known else None


def _last_below(by_txid: Mapping[int, Any], txid: int) -> Any:
    last = max((known for known in by_txid if known < txid), default=None)
    return None if last is None else by_txid[last]


def _follows(positions: Mapping[str, Any], began_from: Mapping[str, int], below: Mapping[str, Any]) -> bool:
    """Returns whether each partition's part began where the batch below ended."""
    return all(
        position is None or began_from.get(scope) == link_to(below.get(scope)) for scope, position in positions.items()
    )


def to_keep(batch: BatchInput, plan: RunPlan) -> Any:
    """Returns a quarantined batch in the form that `SpoutCommitter.keep` takes."""
    if not plan.has_partitions:
        return batch.metadata
    kept = {partition_of(scope): (batch.starts.get(scope), end) for scope, end in batch.positions.items()}
    return kept if plan.is_opaque else {partition: end for partition, (_, end) in kept.items()}
