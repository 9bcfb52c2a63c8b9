"""The position of every partition: as stored, and of attempts that are not committed yet. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.transactional.machine.metadata_log import MetadataLog
from coordinator.transactional.machine.transaction_records import TransactionRecords


class Positions:
    """Reads positions from the metadata and the records of a run; keeps nothing itself.

    Args:
        metadata: of the run.
        transactions: of the run.
        is_opaque: positions of processed attempts are stored with their commit.

    Attributes:
        is_opaque: as given.
    """

    def __init__(self, metadata: MetadataLog, transactions: TransactionRecords, *, is_opaque: bool) -> None:
        self._metadata, self._transactions, self.is_opaque = metadata, transactions, is_opaque

    def uncommitted(self) -> dict[int, Mapping[str, Any]]:
        """Returns txid -> scope -> position that the commit of an opaque spout's attempt will store."""
        return self._transactions.positions() if self.is_opaque else {}

    def by_scope(self) -> dict[str, dict[int, Any]]:
        """Returns scope -> txid -> metadata, of an opaque spout also what is not committed yet."""
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

    def last_cut_number(self) -> int:
        """Returns what the spout knows that transaction by."""
        return self._metadata.number_of(self.last_cut_txid())
