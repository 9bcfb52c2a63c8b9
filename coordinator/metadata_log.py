"""What is stored as metadata: the coordinator's by txid, each partition's by txid.

The positions of an opaque spout are stored by the commit that publishes them; until then the run machine keeps
them with their attempts and hands them in where they count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coordinated_bolt import AttemptOutcome
from state import MetadataChanges, TransactionalState, metadata_field, parse_metadata_field

COORDINATOR_SCOPE = "coordinator"

Positions = Mapping[int, Mapping[str, Any]]
"""Txid -> scope -> position, of processed attempts of an opaque spout."""


class MetadataLog:
    """Says what to store, when, and what to forget.

    Args:
        stored: metadata fields as acquired.
        is_opaque: what emitters cut is stored with the commit and not before.
        committed_txid: last committed txid.
    """

    def __init__(self, stored: Mapping[str, Any], *, is_opaque: bool = False, committed_txid: int = 0) -> None:
        self._void = frozenset(_foreign(stored, committed_txid)) if is_opaque else frozenset()
        self._state = TransactionalState({name: value for name, value in stored.items() if name not in self._void})
        self._is_opaque = is_opaque

    @property
    def coordinator(self) -> Mapping[int, Any]:
        """Txid -> metadata of the spout's coordinator."""
        return self._state.values(COORDINATOR_SCOPE)

    @property
    def partitions(self) -> dict[str, dict[int, Any]]:
        """Scope -> txid -> metadata, of partitioned and opaque spouts, as far as it is stored."""
        return {s: dict(self._state.values(s)) for s in self._state.scopes() if s != COORDINATOR_SCOPE}

    def with_uncommitted(self, positions: Positions) -> dict[str, dict[int, Any]]:
        """The same with the positions of an opaque spout that are not committed yet."""
        found = self.partitions
        for txid, by_scope in positions.items():
            for scope, position in by_scope.items():
                found.setdefault(scope, {})[txid] = position
        return found

    def coordinator_entries(self, entries: Mapping[int, Any]) -> dict[str, Any]:
        """Takes in what the coordinator cut; returns the fields to store."""
        for txid, value in entries.items():
            self._state.put(COORDINATOR_SCOPE, txid, value)
        return self._state.take_changes().puts

    def partition_entries(self, outcomes: Iterable[AttemptOutcome]) -> dict[str, Any]:
        """Takes in what emitters of a partitioned spout cut; returns the fields to store now."""
        for outcome in outcomes:
            for scope, value in outcome.metadata.items():
                self._state.put(scope, outcome.attempt.txid, value)
        return self._state.take_changes().puts

    def commit_changes(self, committed_txid: int, positions: Positions) -> MetadataChanges:
        """What the commit of everything up to a txid stores and forgets.

        Of every scope the last value up to that txid stays, however old: the next batch is cut from it,
        also of a partition that was away for a while.

        Args:
            committed_txid: the last txid of the commit.
            positions: txid -> scope -> position, of an opaque spout, not stored yet.
        """
        fresh = _fresh(committed_txid, positions)
        puts = {metadata_field(scope, txid): value for scope, (txid, value) in fresh.items()}
        forgets = tuple(
            metadata_field(scope, txid)
            for scope in self._state.scopes()
            for txid in self._outdated(scope, committed_txid, newest=fresh[scope][0] if scope in fresh else 0)
        )
        return MetadataChanges(puts, (*forgets, *sorted(self._void - puts.keys())))

    def committed(self, committed_txid: int, positions: Positions) -> None:
        """Those changes are made: the same is done here."""
        for scope, (txid, value) in _fresh(committed_txid, positions).items():
            self._state.put(scope, txid, value)
        for scope in self._state.scopes():
            self._state.remove(scope, self._outdated(scope, committed_txid))
        self._state.take_changes()
        self._void = frozenset()

    def _outdated(self, scope: str, committed_txid: int, *, newest: int = 0) -> list[int]:
        txids = self._state.values(scope)
        last = max((txid for txid in txids if txid <= committed_txid), default=newest)
        return [txid for txid in txids if txid < max(last, newest)]


def _fresh(committed_txid: int, positions: Positions) -> dict[str, tuple[int, Any]]:
    """Scope -> (txid, position), the last not stored of every scope up to a txid."""
    fresh: dict[str, tuple[int, Any]] = {}
    for txid in sorted(positions):
        if txid <= committed_txid:
            fresh |= {scope: (txid, value) for scope, value in positions[txid].items()}
    return fresh


def _foreign(stored: Iterable[str], committed_txid: int) -> Iterator[str]:
    """Fields that no opaque spout has stored, but one of another kind, over which it was adopted.

    What that one stored ahead of its commits never came to be, and what its coordinator said is not asked for.
    """
    for name in stored:
        scope, txid = parse_metadata_field(name)
        if scope == COORDINATOR_SCOPE or txid > committed_txid:
            yield name
