"""Positions of partitions, stored and unstored, and the check that each batch begins where the last ended. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.spouts.partition_cut import UNCHAINED, link_to
from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.transaction_records import TransactionRecords


def chained(outcomes: Sequence[AttemptResult], known: Mapping[str, Mapping[int, Any]]) -> Iterator[AttemptResult]:
    """Yields the outcomes in txid order; the first that does not begin where the batches below end is made a failure.

    Args:
        outcomes: the outcomes of one wave, ascending; those after a failure are replayed anyway and not checked.
        known: scope -> txid -> metadata, of all transactions below the wave.
    """
    below = {scope: dict(by_txid) for scope, by_txid in known.items()}
    has_failed = False
    for outcome in outcomes:
        loose = [scope for scope in outcome.metadata if not _follows(outcome, scope, below.get(scope, {}))]
        if not has_failed and outcome.failure is None and loose:
            text = f"{min(loose)} does not begin where the batch below it ended: its task was executed twice"
            yield replace(outcome, failure=Failure(FailureKind.INCOMPLETE, ACKER_COMPONENT, 0, text))
            has_failed = True
        else:
            yield outcome
            has_failed = has_failed or outcome.failure is not None
        for scope, metadata in outcome.metadata.items():
            below.setdefault(scope, {})[outcome.attempt.txid] = metadata


def _follows(outcome: AttemptResult, scope: str, by_txid: Mapping[int, Any]) -> bool:
    if outcome.metadata[scope] is None:  # a later batch of the partition is stored: nothing was cut or emitted
        return True
    if outcome.began_from.get(scope) == UNCHAINED:  # added by the engine, such as a digest of rows
        return True
    last_txid = max((txid for txid in by_txid if txid < outcome.attempt.txid), default=None)
    return outcome.began_from.get(scope) == link_to(None if last_txid is None else by_txid[last_txid])


class Positions:
    """Reads positions from the metadata and the records of a run; keeps nothing itself.

    Args:
        metadata: the run's metadata.
        transactions: the run's transactions.
        is_opaque: positions of processed attempts are stored with their commit.

    Attributes:
        is_opaque: as given.
    """

    def __init__(self, metadata: MetadataLog, transactions: TransactionRecords, *, is_opaque: bool) -> None:
        self._metadata, self._transactions, self.is_opaque = metadata, transactions, is_opaque

    def uncommitted(self) -> dict[int, Mapping[str, Any]]:
        """Returns txid -> scope -> position that a commit of an opaque spout's attempt will store."""
        return self._transactions.positions() if self.is_opaque else {}

    def by_scope(self) -> dict[str, dict[int, Any]]:
        """Returns scope -> txid -> metadata; for an opaque spout, also the uncommitted positions."""
        return self._metadata.with_uncommitted(self.uncommitted())

    def last_positions(self) -> dict[str, Any]:
        """Returns scope -> its last position, committed or not."""
        uncommitted = self.uncommitted()
        last = self._metadata.last_positions()
        for txid in sorted(uncommitted):
            last |= uncommitted[txid]
        return last

    def last_cut_txid(self) -> int:
        """Returns the highest txid whose emitters have reported what they cut, or the last committed one."""
        committed_txid = self._transactions.currtx - 1
        if self.is_opaque:
            return max(self.uncommitted(), default=committed_txid)
        return max(self._metadata.last_cut_txid, committed_txid)

    def number_of(self, txid: int) -> int:
        """Returns the spout's number of a transaction."""
        return self._metadata.number_of(txid)

    def committed_number(self) -> int:
        """Returns the spout's number of the last committed transaction."""
        return self.number_of(self._transactions.currtx - 1)

    def last_cut_number(self) -> int:
        """Returns the spout's number of the transaction `last_cut_txid`."""
        return self.number_of(self.last_cut_txid())
