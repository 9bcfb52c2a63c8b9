"""The metadata that a run stores by txid: the coordinator's, each partition's, and the spout's notes. Pure.

The positions of an opaque spout are stored with the commit that publishes them, and so are notes. Until then the run
machine keeps them with their transactions and passes them in. Notes outlive the metadata they were made from: the last
one of each name is kept for good.

The first position of a partition that was never read is its metadata at txid 0, stored before anything is cut.

The spout does not cut a republished batch: the metadata at its txid is carried over from the transaction below, so that
the next batch is cut from there. How many batches were republished is stored too, because the spout's own numbers leave
them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from state.keys import metadata_field, parse_metadata_field
from state.metadata import MetadataChanges, TransactionalState

COORDINATOR_SCOPE = "coordinator"
NOTE_SCOPE = "note."
REPUBLISHED_SCOPE = "replayed"
"""At the txid of each republished batch: how many were republished up to it, and the spout's number of the batch."""
REPUBLISHED_KEPT = 1_024
"""Entries of older transactions are forgotten: the spout's committer was notified of them long ago."""

Positions = Mapping[int, Mapping[str, Any]]
"""Txid -> scope -> position, of processed attempts of an opaque spout."""

Notes = Mapping[int, Mapping[str, Any]]
"""Txid -> name -> note, of transactions that were cut and are not committed."""


class MetadataLog:
    """Decides which metadata to store and to forget, and when.

    Args:
        stored: the metadata fields in the store.
        is_opaque: the spout is opaque, so stored coordinator metadata is from a spout of another kind.
        committed_txid: last committed txid.

    Attributes:
        last_cut_txid: the highest txid whose emitters' metadata is stored, 0 if there is none.
    """

    def __init__(self, stored: Mapping[str, Any], *, is_opaque: bool = False, committed_txid: int = 0) -> None:
        self._notes: dict[str, tuple[str, Any]] = {}  # name -> the field that stores it, and its value
        self._replaced: Mapping[str, Any] = {}
        self._replaced_after = committed_txid
        self._republished: dict[int, tuple[int, int]] = {}  # txid -> count up to it, spout's number of its batch
        self._void = frozenset(_foreign(stored, committed_txid)) if is_opaque else frozenset()
        self._state = TransactionalState()
        for name, value in stored.items():
            if name not in self._void:
                self._take(name, value)
        self._state.take_changes()
        self.last_cut_txid = max((txid for by_txid in self.partitions.values() for txid in by_txid), default=0)

    @property
    def coordinator(self) -> Mapping[int, Any]:
        """Txid -> metadata of the spout's coordinator."""
        return self._state.values(COORDINATOR_SCOPE)

    @property
    def partitions(self) -> dict[str, dict[int, Any]]:
        """Scope -> txid -> stored metadata of partitions; empty for a spout without partitions."""
        return {s: dict(self._state.values(s)) for s in self._state.scopes() if s != COORDINATOR_SCOPE}

    def number_of(self, txid: int) -> int:
        """Returns how many transactions up to a txid the spout has cut: its own number of the last one."""
        if not self._republished:
            return txid
        below = max((each for each in self._republished if each <= txid), default=None)
        if below is not None:
            return txid - self._republished[below][0]
        return txid - self._republished[min(self._republished)][0] + 1

    def batch_number(self, txid: int) -> int:
        """Returns the spout's number of a transaction; a republished batch keeps its old number; 0 for dead letters."""
        return self._republished[txid][1] if txid in self._republished else self.number_of(txid)

    def carried_to(self, txid: int) -> dict[str, Any]:
        """Returns scope -> the metadata that a republished batch at `txid` takes over from the transaction below."""
        scopes = {scope: self._state.values(scope) for scope in self._state.scopes()}
        return {scope: by_txid[txid - 1] for scope, by_txid in scopes.items() if txid - 1 in by_txid}

    def last_positions(self) -> dict[str, Any]:
        """Returns scope -> its last stored metadata."""
        known = {scope: self._state.values(scope) for scope in self._state.scopes() if scope != COORDINATOR_SCOPE}
        return {scope: by_txid[max(by_txid)] for scope, by_txid in known.items()}

    def notes(self, uncommitted: Notes) -> dict[str, Any]:
        """Returns name -> the last note of all transactions cut, committed or not."""
        stored = {name: value for name, (_, value) in self._notes.items()}
        return stored | self._fresh_notes(max([*uncommitted, self._replaced_after]), uncommitted)

    def replace_notes(self, notes: Mapping[str, Any]) -> None:
        """Replaces the notes of all transactions cut so far; None forgets a note.

        The new notes describe the input as it is now, the notes of earlier runs as it was then. So the new ones are
        stored with the last transaction cut by earlier runs, whose notes they override, or when the run ends. If the
        run dies first, the next run compares the input again.
        """
        self._replaced, self._replaced_after = notes, max([self._replaced_after, *self.coordinator])

    def unstored_notes(self, committed_txid: int) -> MetadataChanges:
        """Returns what the end of the run has to store and forget of the replaced notes, if no commit has done that."""
        return self.commit_changes(committed_txid, {}, {}) if self._replaced else MetadataChanges()

    def with_uncommitted(self, positions: Positions) -> dict[str, dict[int, Any]]:
        """Returns `partitions` with positions of an opaque spout that are not committed yet."""
        found = self.partitions
        for txid, by_scope in positions.items():
            for scope, position in by_scope.items():
                found.setdefault(scope, {})[txid] = position
        return found

    def take_first_positions(self, positions: Mapping[str, Any]) -> dict[str, Any]:
        """Takes in the first positions of partitions that were never read; returns the fields to store."""
        for scope, position in positions.items():
            self._state.put(scope, 0, position)
        return self._state.take_changes().puts

    def coordinator_entries(self, entries: Mapping[int, Any]) -> dict[str, Any]:
        """Takes in the coordinator's metadata of new transactions; returns the fields to store."""
        for txid, value in entries.items():
            self._state.put(COORDINATOR_SCOPE, txid, value)
        return self._state.take_changes().puts

    def note_positions(self, outcomes: Iterable[AttemptResult]) -> dict[str, Any]:
        """Takes in the positions that emitters cut; returns the fields to store now, none without partitions."""
        for outcome in outcomes:
            self.last_cut_txid = max(self.last_cut_txid, outcome.attempt.txid)
            for scope, value in outcome.metadata.items():
                self._state.put(scope, outcome.attempt.txid, value)
        return self._state.take_changes().puts

    def commit_changes(
        self, committed_txid: int, positions: Positions, notes: Notes, *, republished_number: int | None = None
    ) -> MetadataChanges:
        """Returns what the commit of everything up to a txid stores and forgets.

        The last value of every scope up to that txid is kept, however old: the next batch is cut from it, even if the
        partition was absent for a while.

        Args:
            committed_txid: the last txid of the commit.
            positions: txid -> scope -> unstored position, of an opaque spout or of a batch that is set aside or
                republished.
            notes: txid -> name -> unstored note.
            republished_number: the spout's number of the quarantined batch that the commit publishes.
        """
        fresh = _fresh(committed_txid, positions)
        puts = {metadata_field(scope, txid): value for scope, (txid, value) in fresh.items()}
        fresh_notes = self._fresh_notes(committed_txid, notes)
        puts |= {_note_field(name, committed_txid): value for name, value in fresh_notes.items() if value is not None}
        forgets = tuple(
            metadata_field(scope, txid)
            for scope in self._state.scopes()
            for txid in self._outdated(scope, committed_txid, newest=fresh[scope][0] if scope in fresh else 0)
        )
        stale_notes = (self._notes[name][0] for name in fresh_notes if name in self._notes)
        stale = {*self._void, *stale_notes} - puts.keys()
        if republished_number is not None:
            puts[metadata_field(REPUBLISHED_SCOPE, committed_txid)] = [
                self._republished_count() + 1,
                republished_number,
            ]
            stale |= {metadata_field(REPUBLISHED_SCOPE, txid) for txid in self._old_republished(committed_txid)}
        return MetadataChanges(puts, (*forgets, *sorted(stale)))

    def committed(self, committed_txid: int, changes: MetadataChanges) -> None:
        """Applies the changes that `commit_changes` returned for a txid, after the store has made them."""
        assert changes.puts.keys().isdisjoint(changes.forgets), "a field is stored and forgotten at once"
        for name in changes.forgets:
            scope, txid = parse_metadata_field(name)
            if scope == REPUBLISHED_SCOPE:
                del self._republished[txid]
            elif scope.startswith(NOTE_SCOPE):
                del self._notes[scope.removeprefix(NOTE_SCOPE)]
            else:
                self._state.remove(scope, [txid])
        for name, value in changes.puts.items():
            self._take(name, value)
        self._state.take_changes()
        self._void = frozenset()
        if committed_txid >= self._replaced_after:
            self._replaced = {}

    def _take(self, name: str, value: Any) -> None:
        """Takes in a stored field."""
        scope, txid = parse_metadata_field(name)
        if scope == REPUBLISHED_SCOPE:
            self._republished[txid] = (value[0], value[1])
        elif scope.startswith(NOTE_SCOPE):
            self._notes[scope.removeprefix(NOTE_SCOPE)] = (name, value)
        else:
            self._state.put(scope, txid, value)

    def _republished_count(self) -> int:
        return max((count for count, _ in self._republished.values()), default=0)

    def _old_republished(self, committed_txid: int) -> set[int]:
        return {txid for txid in self._republished if txid <= committed_txid - REPUBLISHED_KEPT}

    def _fresh_notes(self, committed_txid: int, notes: Notes) -> dict[str, Any]:
        """Returns name -> the last unstored note up to a txid; None means to forget it."""
        fresh: dict[str, Any] = {}
        for txid, is_replaced in sorted([*((txid, False) for txid in notes), (self._replaced_after, True)]):
            if txid <= committed_txid:
                fresh |= self._replaced if is_replaced else notes[txid]
        return fresh

    def _outdated(self, scope: str, committed_txid: int, *, newest: int = 0) -> list[int]:
        txids = self._state.values(scope)
        last = max((txid for txid in txids if txid <= committed_txid), default=newest)
        return [txid for txid in txids if txid < max(last, newest)]


def _fresh(committed_txid: int, positions: Positions) -> dict[str, tuple[int, Any]]:
    """Returns scope -> (txid, position): the last unstored position up to a txid."""
    fresh: dict[str, tuple[int, Any]] = {}
    for txid in sorted(positions):
        if txid <= committed_txid:
            fresh |= {scope: (txid, value) for scope, value in positions[txid].items()}
    return fresh


def is_own_scope(scope: str) -> bool:
    """Returns whether fields of a scope are the log's own, not a spout's metadata."""
    return scope.startswith(NOTE_SCOPE) or scope == REPUBLISHED_SCOPE


def _note_field(name: str, txid: int) -> str:
    return metadata_field(f"{NOTE_SCOPE}{name}", txid)


def _foreign(stored: Iterable[str], committed_txid: int) -> Iterator[str]:
    """Yields fields that another kind of spout has stored, before the opaque one was adopted.

    Metadata that the other spout stored ahead of its commits never took effect, and its coordinator's is not used. The
    log's own fields are not among them.
    """
    for name in stored:
        scope, txid = parse_metadata_field(name)
        if scope == COORDINATOR_SCOPE or (txid > committed_txid and not is_own_scope(scope)):
            yield name
