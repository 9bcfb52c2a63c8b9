"""Every transaction a run has to do with, from the last committed one to the end of the window. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinator.transactional.machine.attempt_record import AttemptRecord, AttemptState, TransactionRecord
from state.attempt import TransactionAttempt
from state.errors import ProtocolError

IN_COMMIT_PHASE = (AttemptState.COMMITTING, AttemptState.PUBLISHING)
WITH_OUTCOME = (AttemptState.HELD, AttemptState.PROCESSED, *IN_COMMIT_PHASE)


class TransactionRecords:
    """One record per txid; the active ones are consecutive from `currtx` on.

    Args:
        stored: what earlier runs have cut and stored.
        committed_txid: last committed txid; its metadata is kept, for the next is cut from it.
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
        """Every txid there is a record of, ascending."""
        return sorted(self._records)

    def last_txid(self) -> int:
        """The highest txid cut so far, or the last committed one."""
        return max(self._records, default=self.currtx - 1)

    def last_metadata(self) -> Any:
        """Metadata of the highest txid cut so far, None before the first."""
        return self._records[self.last_txid()].metadata if self._records else None

    def active(self) -> Iterator[AttemptRecord]:
        """Current attempts, in no order."""
        return (record.current for record in self._records.values() if record.current is not None)

    def current_of(self, txid: int) -> AttemptRecord | None:
        """The attempt of a txid that is current, if one is."""
        record = self._records.get(txid)
        return None if record is None else record.current

    def wave_of(self, attempts: tuple[TransactionAttempt, ...]) -> int:
        """The wave of a group that is active."""
        current = self.current_of(attempts[0].txid)
        assert current is not None
        return current.wave_id

    def record_of(self, attempt: TransactionAttempt) -> TransactionRecord | None:
        """The record of an attempt's transaction, if the attempt is the current one."""
        current = self.current_of(attempt.txid)
        return self._records[attempt.txid] if current is not None and current.attempt == attempt else None

    def is_current(self, attempt: TransactionAttempt) -> bool:
        """Whether an attempt is the current one of its txid."""
        return self.record_of(attempt) is not None

    def outcomes(self, attempts: Iterable[TransactionAttempt]) -> dict[TransactionAttempt, AttemptOutcome]:
        """What the ackers said of these attempts, those of them that are current and processed."""
        found = {attempt: self.current_of(attempt.txid) for attempt in attempts if self.is_current(attempt)}
        return {a: record.outcome for a, record in found.items() if record is not None and record.outcome is not None}

    def waiting(self) -> list[TransactionRecord]:
        """Transactions whose attempt waits for a wave, ascending."""
        return [self._records[txid] for txid in self.known() if _state(self._records[txid]) is AttemptState.WAITING]

    def consecutive_processed(self, limit: int) -> tuple[TransactionAttempt, ...]:
        """The run of at most `limit` processed attempts from `currtx`, all of one wave."""
        group: list[AttemptRecord] = []
        for txid in range(self.currtx, self.currtx + limit):
            current = self.current_of(txid)
            if current is None or current.state is not AttemptState.PROCESSED:
                break
            if group and current.wave_id != group[0].wave_id:
                break
            group.append(current)
        return tuple(record.attempt for record in group)

    def positions(self) -> dict[int, Mapping[str, Any]]:
        """Txid -> what its emitters cut, of attempts whose tree has closed."""
        return {record.attempt.txid: record.outcome.metadata for record in self.active() if record.outcome is not None}

    def notes(self) -> dict[int, Mapping[str, Any]]:
        """Txid -> what its commit stores as notes, of everything that was cut and is not committed."""
        return {txid: record.notes for txid, record in self._records.items() if txid >= self.currtx}

    # Changing

    def issue(self, txid: int) -> TransactionAttempt:
        """A new attempt at a transaction that was cut becomes current."""
        return self._records[txid].issue(self._new_attempt_id())

    def take_in(self, txid: int, metadata: Any, byte_count: int, notes: Mapping[str, Any]) -> TransactionAttempt:
        """A transaction was cut, for the first time or again, and gets an attempt."""
        record = self._records.setdefault(txid, TransactionRecord(txid, metadata))
        record.metadata, record.byte_count, record.notes = metadata, byte_count, notes
        return self.issue(txid)

    def move(self, attempts: Iterable[TransactionAttempt], state: AttemptState, reason: str = "") -> None:
        """Current attempts change their state.

        Raises:
            ProtocolError: one is not current, or has no such transition.
        """
        for attempt in attempts:
            record = self.record_of(attempt)
            if record is None:
                raise ProtocolError(f"attempt {attempt} is {state.value} and not current")
            record.move(state, reason)

    def defer(self, attempts: Iterable[TransactionAttempt]) -> None:
        """These attempts of a group wait for the next one, those of them that are still current."""
        for attempt in attempts:
            record = self.record_of(attempt)
            if record is not None and _state(record) is AttemptState.COMMITTING:
                record.move(AttemptState.PROCESSED, "goes with the next group")

    def drop_from(self, txid: int, reason: str) -> list[AttemptRecord]:
        """An attempt is void, and with it all later ones; returns them, ascending."""
        dropped = [record for record in map(self._records.__getitem__, self.known()) if record.txid >= txid]
        reasons = {txid: reason}
        return [
            record.move(AttemptState.DROPPED, reasons.get(record.txid, f"txid {txid} failed"))
            for record in dropped
            if record.current is not None
        ]

    def committed(self, attempts: tuple[TransactionAttempt, ...]) -> list[AttemptRecord]:
        """A group is durable: `currtx` moves past it, and all but its last transaction is forgotten.

        Raises:
            ProtocolError: it does not begin at `currtx`.
        """
        if attempts[0].txid != self.currtx:
            raise ProtocolError(f"attempt {attempts[0]} was committed while txid {self.currtx} is next")
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
            is_contiguous: nothing that is known has a hole; not so for an opaque spout, which stores nothing ahead.

        Raises:
            AssertionError: one is broken.
        """
        active = sorted(record.attempt.txid for record in self.active())
        assert active == list(range(self.currtx, self.currtx + len(active))), f"a gap among active txids {active}"
        assert len(active) <= window
        known = self.known()
        assert not known or known[0] >= self.currtx - 1, "a transaction was not forgotten"
        if is_contiguous and known:
            assert known == list(range(known[0], known[0] + len(known))), f"a hole in {known}"
        for record in self.active():
            told = self._records[record.attempt.txid].told()
            assert (record.state in WITH_OUTCOME) == (record.outcome is not None), told
            assert (record.state is AttemptState.WAITING) == (record.wave_id == 0), told


def _state(record: TransactionRecord) -> AttemptState | None:
    return None if record.current is None else record.current.state
