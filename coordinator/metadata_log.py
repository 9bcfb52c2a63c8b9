"""Stored metadata as the driver knows it: the coordinator's by txid, each partition's by txid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordinated_bolt import AttemptOutcome
from state import TransactionalState, metadata_field

COORDINATOR_SCOPE = "coordinator"


class MetadataLog:
    """Mirrors what is stored, and says what to store and what to forget.

    Args:
        stored: metadata fields as acquired.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._state = TransactionalState(stored)

    @property
    def coordinator(self) -> Mapping[int, Any]:
        """Txid -> metadata of the spout's coordinator."""
        return self._state.values(COORDINATOR_SCOPE)

    @property
    def partitions(self) -> dict[str, Mapping[int, Any]]:
        """Scope -> txid -> metadata, of partitioned spouts."""
        return {scope: self._state.values(scope) for scope in self._state.scopes() if scope != COORDINATOR_SCOPE}

    def coordinator_entries(self, entries: Mapping[int, Any]) -> dict[str, Any]:
        """Takes in what the coordinator cut; returns the fields to store."""
        for txid, value in entries.items():
            self._state.put(COORDINATOR_SCOPE, txid, value)
        return self._state.take_changes().puts

    def partition_entries(self, outcomes: Iterable[AttemptOutcome]) -> dict[str, Any]:
        """Takes in what emitters cut; returns the fields to store."""
        for outcome in outcomes:
            for scope, value in outcome.metadata.items():
                self._state.put(scope, outcome.attempt.txid, value)
        return self._state.take_changes().puts

    def forgettable(self, committed_txid: int) -> tuple[str, ...]:
        """Fields no longer needed once a txid is committed.

        Of every scope the last value up to that txid stays, however old: the next batch is cut from it,
        also of a partition that was away for a while.
        """
        return tuple(
            metadata_field(scope, txid)
            for scope in self._state.scopes()
            for txid in self._outdated(scope, committed_txid)
        )

    def forget(self, committed_txid: int) -> None:
        """Drops those fields here too."""
        for scope in self._state.scopes():
            self._state.remove(scope, self._outdated(scope, committed_txid))
        self._state.take_changes()

    def _outdated(self, scope: str, committed_txid: int) -> list[int]:
        txids = self._state.values(scope)
        last = max((txid for txid in txids if txid <= committed_txid), default=0)
        return [txid for txid in txids if txid < last]
