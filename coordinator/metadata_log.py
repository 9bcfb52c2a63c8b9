"""Metadata as the driver knows it: the coordinator's by txid, each partition's by txid, and the spout's notes.

Mostly a mirror of what is stored. The positions of an opaque spout are the exception: what its emitters cut
is kept here, by attempt, until the commit that publishes the attempt stores it. Notes are stored by the commit too:
they outlive the metadata they were made from, the last of each name for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from coordinated_bolt import AttemptOutcome
from state import MetadataChanges, TransactionalState, TransactionAttempt, metadata_field, parse_metadata_field

COORDINATOR_SCOPE = "coordinator"
NOTE_SCOPE = "note."
NotesOf = Callable[[Any], Mapping[str, Any]]
"""Metadata of the coordinator -> name -> what to remember."""


def no_notes(metadata: Any) -> Mapping[str, Any]:
    """What most spouts remember."""
    return {}


class MetadataLog:
    """Says what to store, when, and what to forget.

    Args:
        stored: metadata fields as acquired.
        is_opaque: what emitters cut is stored with the commit and not before.
        committed_txid: last committed txid.
        notes_of: what is to be remembered of the coordinator's metadata.
    """

    def __init__(
        self,
        stored: Mapping[str, Any],
        *,
        is_opaque: bool = False,
        committed_txid: int = 0,
        notes_of: NotesOf = no_notes,
    ) -> None:
        self._notes_of = notes_of
        self._notes: dict[str, tuple[str, Any]] = {}  # name -> where it is stored, and what
        self._uncommitted_notes: dict[int, Mapping[str, Any]] = {}
        for name, value in stored.items():
            if name.startswith(NOTE_SCOPE):
                scope, _ = parse_metadata_field(name)
                self._notes[scope.removeprefix(NOTE_SCOPE)] = (name, value)
        stored = {name: value for name, value in stored.items() if not name.startswith(NOTE_SCOPE)}
        self._void = frozenset(_foreign(stored, committed_txid)) if is_opaque else frozenset()
        self._state = TransactionalState({name: value for name, value in stored.items() if name not in self._void})
        self._is_opaque = is_opaque
        self._committed_txid = committed_txid
        self._uncommitted: dict[TransactionAttempt, Mapping[str, Any]] = {}
        self._last_positions: dict[str, Any] | None = None  # asked for each new txid, so made once a change
        for txid, value in self.coordinator.items():
            if txid > committed_txid:
                self._uncommitted_notes[txid] = notes_of(value)
        self._last_cut_txid = max((txid for by_txid in self.partitions.values() for txid in by_txid), default=0)

    @property
    def coordinator(self) -> Mapping[int, Any]:
        """Txid -> metadata of the spout's coordinator."""
        return self._state.values(COORDINATOR_SCOPE)

    @property
    def partitions(self) -> Mapping[str, Mapping[int, Any]]:
        """Scope -> txid -> metadata, of partitioned and opaque spouts; of the latter also what is uncommitted."""
        scopes = [scope for scope in self._state.scopes() if scope != COORDINATOR_SCOPE]
        found: dict[str, dict[int, Any]] = {scope: dict(self._state.values(scope)) for scope in scopes}
        for attempt, positions in self._uncommitted.items():
            for scope, position in positions.items():
                found.setdefault(scope, {})[attempt.txid] = position
        return found

    def notes(self) -> dict[str, Any]:
        """Name -> the last note, of everything that was cut, committed or not."""
        found = {name: value for name, (_, value) in self._notes.items()}
        for txid in sorted(self._uncommitted_notes):
            found |= self._uncommitted_notes[txid]
        return found

    def replace_notes(self, notes: Mapping[str, Any]) -> None:
        """Has notes stored, or forgotten if None, with the next commit; those of later transactions win."""
        self._uncommitted_notes[self._committed_txid] = notes

    def last_positions(self) -> Mapping[str, Any]:
        """Scope -> its last metadata, committed or not."""
        if self._last_positions is None:
            self._last_positions = {scope: by_txid[max(by_txid)] for scope, by_txid in self.partitions.items()}
        return self._last_positions

    def last_cut_txid(self) -> int:
        """The highest txid whose emitters have told what they cut, or the last committed one."""
        if self._is_opaque:
            return max((attempt.txid for attempt in self._uncommitted), default=self._committed_txid)
        return max(self._last_cut_txid, self._committed_txid)

    def coordinator_entries(self, entries: Mapping[int, Any]) -> dict[str, Any]:
        """Takes in what the coordinator cut; returns the fields to store."""
        for txid, value in entries.items():
            self._uncommitted_notes[txid] = self._notes_of(value)
            self._state.put(COORDINATOR_SCOPE, txid, value)
        return self._state.take_changes().puts

    def partition_entries(self, outcomes: Iterable[AttemptOutcome]) -> dict[str, Any]:
        """Takes in what emitters cut; returns the fields to store now: none of an opaque spout."""
        self._last_positions = None
        for outcome in outcomes:
            if self._is_opaque:
                self._uncommitted[outcome.attempt] = outcome.metadata
                continue
            self._last_cut_txid = max(self._last_cut_txid, outcome.attempt.txid)
            for scope, value in outcome.metadata.items():
                self._state.put(scope, outcome.attempt.txid, value)
        return self._state.take_changes().puts

    def drop(self, attempts: Iterable[TransactionAttempt]) -> None:
        """These attempts are void, and with them what was cut and not stored."""
        self._last_positions = None
        for attempt in attempts:
            self._uncommitted.pop(attempt, None)

    def commit_changes(self, committed_txid: int) -> MetadataChanges:
        """What the commit of everything up to a txid stores and forgets.

        Of every scope the last value up to that txid stays, however old: the next batch is cut from it,
        also of a partition that was away for a while.
        """
        fresh = self._fresh(committed_txid)
        puts = {metadata_field(scope, txid): value for scope, (txid, value) in fresh.items()}
        notes = self._fresh_notes(committed_txid)
        puts |= {_note_field(name, committed_txid): value for name, value in notes.items() if value is not None}
        forgets = tuple(
            metadata_field(scope, txid)
            for scope in self._state.scopes()
            for txid in self._outdated(scope, committed_txid, newest=fresh[scope][0] if scope in fresh else 0)
        )
        stale_notes = (self._notes[name][0] for name in notes if name in self._notes)
        stale = {*self._void, *stale_notes} - puts.keys()
        return MetadataChanges(puts, (*forgets, *sorted(stale)))

    def committed(self, committed_txid: int) -> None:
        """Those changes are made: the same is done here."""
        for scope, (txid, value) in self._fresh(committed_txid).items():
            self._state.put(scope, txid, value)
        for scope in self._state.scopes():
            self._state.remove(scope, self._outdated(scope, committed_txid))
        self._state.take_changes()
        self._void = frozenset()
        for name, value in self._fresh_notes(committed_txid).items():
            self._notes.pop(name, None)
            if value is not None:
                self._notes[name] = (_note_field(name, committed_txid), value)
        self._uncommitted_notes = {t: n for t, n in self._uncommitted_notes.items() if t > committed_txid}
        self.drop([attempt for attempt in self._uncommitted if attempt.txid <= committed_txid])
        self._committed_txid = committed_txid

    def _fresh(self, committed_txid: int) -> dict[str, tuple[int, Any]]:
        """Scope -> (txid, position), the last not stored of every scope up to a txid."""
        fresh: dict[str, tuple[int, Any]] = {}
        for attempt in sorted(self._uncommitted):
            if attempt.txid <= committed_txid:
                fresh |= {scope: (attempt.txid, value) for scope, value in self._uncommitted[attempt].items()}
        return fresh

    def _fresh_notes(self, committed_txid: int) -> dict[str, Any]:
        """Name -> the last note up to a txid that is not stored; None if it is to be forgotten."""
        fresh: dict[str, Any] = {}
        for txid in sorted(self._uncommitted_notes):
            if txid <= committed_txid:
                fresh |= self._uncommitted_notes[txid]
        return fresh

    def _outdated(self, scope: str, committed_txid: int, *, newest: int = 0) -> list[int]:
        txids = self._state.values(scope)
        last = max((txid for txid in txids if txid <= committed_txid), default=newest)
        return [txid for txid in txids if txid < max(last, newest)]


def _note_field(name: str, txid: int) -> str:
    return metadata_field(f"{NOTE_SCOPE}{name}", txid)


def _foreign(stored: Iterable[str], committed_txid: int) -> Iterator[str]:
    """Fields that no opaque spout has stored, but one of another kind, over which it was adopted.

    What that one stored ahead of its commits never came to be, and what its coordinator said is not asked for.
    """
    for name in stored:
        scope, txid = parse_metadata_field(name)
        if scope == COORDINATOR_SCOPE or txid > committed_txid:
            yield name
