"""The transactions of a run, from the last committed one to the end of the window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.transactional.machine.republication import Republication
from coordinator.transactional.machine.transaction_record import ActiveAttempt, AttemptState, TransactionRecord
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

COMMITTING = (AttemptState.COMMITTING, AttemptState.PUBLISHING)
WITHOUT_WAVE = (AttemptState.WAITING, AttemptState.SETTING_ASIDE)
WITH_OUTCOME = (AttemptState.PROCESSED, AttemptState.COMMITTING, AttemptState.PUBLISHING)


class TransactionRecords:
    """Keeps one record per txid; the active ones are consecutive from `currtx` on.

    Args:
        stored: transactions that earlier runs cut and stored.
        committed_txid: last committed txid; its metadata is kept, because the next transaction is cut from it.
        new_attempt_id: draws an attempt id.

    Attributes:
        currtx: lowest txid that is not committed.
    """

    def __init__(
        self,
        stored: Iterable[TransactionRecord],
        *,
        committed_txid: int,
        new_attempt_id: Callable[[], int],
    ) -> None:
        self._records = {record.txid: record for record in stored}
        self._new_attempt_id = new_attempt_id
        self.currtx = committed_txid + 1

    # Looking

    def __contains__(self, txid: int) -> bool:
        return txid in self._records

    def __getitem__(self, txid: int) -> TransactionRecord:
        return self._records[txid]

    def known(self) -> list[int]:
        """Returns every txid that has a record, ascending."""
        return sorted(self._records)

    def last_txid(self) -> int:
        """Returns the highest txid cut so far, or the last committed one."""
        return max(self._records, default=self.currtx - 1)

    def active(self) -> Iterator[ActiveAttempt]:
        """Returns the current attempts, in any order."""
        return (record.current for record in self._records.values() if record.current is not None)

    def current_of(self, txid: int) -> ActiveAttempt | None:
        """Returns the current attempt of a txid, None if it has none."""
        record = self._records.get(txid)
        return None if record is None else record.current

    def wave_of(self, attempts: tuple[TransactionAttempt, ...]) -> int:
        """Returns the wave of an active group."""
        current = self.current_of(attempts[0].txid)
        assert current is not None
        return current.wave_id

    def record_of(self, attempt: TransactionAttempt) -> TransactionRecord | None:
        """Returns the record of an attempt's transaction, None if the attempt is not the current one."""
        current = self.current_of(attempt.txid)
        return self._records[attempt.txid] if current is not None and current.attempt == attempt else None

    def is_current(self, attempt: TransactionAttempt) -> bool:
        """Returns whether an attempt is the current one of its txid."""
        return self.record_of(attempt) is not None

    def outcomes(self, attempts: Iterable[TransactionAttempt]) -> dict[TransactionAttempt, AttemptResult]:
        """Returns the ackers' results for the attempts that are current and processed."""
        found = {attempt: self.current_of(attempt.txid) for attempt in attempts if self.is_current(attempt)}
        return {a: record.outcome for a, record in found.items() if record is not None and record.outcome is not None}

    def waiting(self) -> list[TransactionRecord]:
        """Returns the transactions whose attempt waits for a wave, ascending, up to where the next wave must end.

        A republished batch gets a wave to itself, because its emitters continue from other positions.
        """
        known = [self._records[txid] for txid in self.known()]
        waiting = [record for record in known if _state(record) is AttemptState.WAITING]
        if waiting and waiting[0].republished is not None:
            return waiting[:1]
        return list(takewhile(lambda record: record.republished is None, waiting))

    def consecutive_processed(self, limit: int) -> tuple[TransactionAttempt, ...]:
        """Returns at most `limit` consecutive processed attempts from `currtx`, all of one wave."""
        group: list[ActiveAttempt] = []
        for txid in range(self.currtx, self.currtx + limit):
            current = self.current_of(txid)
            if current is None or current.state is not AttemptState.PROCESSED:
                break
            if group and current.wave_id != group[0].wave_id:
                break
            group.append(current)
        return tuple(record.attempt for record in group)

    def positions(self) -> dict[int, Mapping[str, Any]]:
        """Returns txid -> the positions that its emitters cut, for attempts whose tree has closed."""
        return {record.attempt.txid: record.outcome.metadata for record in self.active() if record.outcome is not None}

    def notes(self) -> dict[int, Mapping[str, Any]]:
        """Returns txid -> the notes for its commit to store, for transactions that were cut and are not committed."""
        return {txid: record.notes for txid, record in self._records.items() if txid >= self.currtx}

    def is_resting(self, txid: int, now_s: float) -> bool:
        """Returns whether the next attempt at a transaction has to wait for a later time."""
        return txid in self._records and now_s < self._records[txid].retry_at_s

    # Changing

    def issue(self, txid: int) -> TransactionAttempt:
        """Issues a new attempt at a transaction that was cut before."""
        return self._records[txid].issue(self._new_attempt_id())

    def take_in(
        self,
        txid: int,
        metadata: Any,
        byte_count: int,
        notes: Mapping[str, Any],
        *,
        republished: Republication | None = None,
    ) -> TransactionAttempt:
        """Records a transaction that was cut, for the first time or again, and issues an attempt at it."""
        record = self._records.setdefault(txid, TransactionRecord(txid, metadata, republished=republished))
        record.metadata, record.byte_count, record.notes = metadata, byte_count, notes
        return self.issue(txid)

    def move(self, attempts: Iterable[TransactionAttempt], state: AttemptState, reason: str = "") -> None:
        """Changes the state of current attempts.

        Raises:
            ProtocolError: an attempt is not current, or the transition is not allowed.
        """
        for attempt in attempts:
            record = self.record_of(attempt)
            if record is None:
                raise ProtocolError(f"attempt {attempt} cannot become {state.value}: it is not current")
            record.move(state, reason)

    def defer(self, attempts: Iterable[TransactionAttempt]) -> None:
        """Defers the attempts of a group that are still current to the next group."""
        for attempt in attempts:
            record = self.record_of(attempt)
            if record is not None and _state(record) is AttemptState.COMMITTING:
                record.move(AttemptState.PROCESSED, "goes with the next group")

    def drop_from(self, txid: int, reason: str) -> list[ActiveAttempt]:
        """Drops the attempt of a txid and all later ones; returns them, ascending."""
        dropped = [record for record in map(self._records.__getitem__, self.known()) if record.txid >= txid]
        reasons = {txid: reason}
        return [
            record.move(AttemptState.DROPPED, reasons.get(record.txid, f"txid {txid} failed"))
            for record in dropped
            if record.current is not None
        ]

    def committed(self, attempts: tuple[TransactionAttempt, ...]) -> list[ActiveAttempt]:
        """Moves `currtx` past a committed group and forgets all but its last transaction.

        Raises:
            ProtocolError: the group does not begin at `currtx`.
        """
        if attempts[0].txid != self.currtx:
            raise ProtocolError(f"attempt {attempts[0]} was committed, but txid {self.currtx} is next")
        ended = [self._records[attempt.txid].move(AttemptState.COMMITTED) for attempt in attempts]
        last = attempts[-1].txid
        self.currtx = last + 1
        for txid in [txid for txid in self._records if txid < last]:
            del self._records[txid]
        return ended

    def validate(self, *, window: int, is_contiguous: bool) -> None:
        """Checks every invariant of the records.

        Args:
            window: most active transactions.
            is_contiguous: whether the records must have no gap; False for an opaque spout, which stores nothing ahead.

        Raises:
            AssertionError: an invariant is violated.
        """
        active = sorted(record.attempt.txid for record in self.active())
        assert active == list(range(self.currtx, self.currtx + len(active))), f"a gap among active txids {active}"
        assert len(active) <= window
        known = self.known()
        assert not known or known[0] >= self.currtx - 1, "a transaction was not forgotten"
        if is_contiguous and known:
            assert known == list(range(known[0], known[0] + len(known))), f"a hole in {known}"
        for record in self.active():
            story = self._records[record.attempt.txid].story_line()
            assert (record.state in WITH_OUTCOME) == (record.outcome is not None), story
            assert (record.state in WITHOUT_WAVE) == (record.wave_id == 0), story


def _state(record: TransactionRecord) -> AttemptState | None:
    return None if record.current is None else record.current.state
