"""The processing phase of a run's waves: which attempts a wave takes, and what follows from its end. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import WaveCrashed, WaveProcessed
from coordinator.transactional.machine.commits import Commits
from coordinator.transactional.machine.failures import Failures
from coordinator.transactional.machine.positions import chained
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import CancelWave, Decision, StartWave, StoreMetadata
from coordinator.transactional.machine.transaction_record import (
    ActiveAttempt,
    AttemptState,
    EmittersCut,
    TransactionRecord,
)
from coordinator.transactional.machine.wave_records import in_order
from coordinator.watching.failure_cause import CrashKind, Phase
from coordinator.watching.log_records import fields
from state.codec import pack
from state.printable import counted

_LOG = logging.getLogger("txbatch")


class Processing:
    """Starts waves, and judges the engine's reports on them.

    Args:
        books: the run's books.
        failures: handles failed attempts.
        commits: chooses and keeps the groups that run with a wave.
    """

    def __init__(self, books: RunBooks, failures: Failures, commits: Commits) -> None:
        self._books, self._failures, self._commits = books, failures, commits
        self._plan, self._transactions = books.plan, books.transactions

    def start(self) -> Iterator[Decision]:
        """Starts a wave of as many waiting attempts as fit."""
        waiting = self._transactions.waiting()
        chosen = waiting[: self._books.waves.room([record.byte_count for record in waiting])]
        if not chosen:
            return
        batches = tuple(self._batch(record, record.current) for record in chosen if record.current)
        attempts = tuple(batch.attempt for batch in batches)
        wave = self._books.waves.start(attempts, self._books.now_s)
        reason = f"wave {wave.wave_id}"
        for record in chosen:
            record.move(AttemptState.PROCESSING, reason).wave_id = wave.wave_id
        yield StartWave(wave.wave_id, batches, self._commits.early_groups(attempts), self._stored(chosen[0]))

    def processed(self, event: WaveProcessed) -> Iterator[Decision]:
        """Handles a wave whose processing phase has ended."""
        self._books.causes.ended(event.wave_id)
        wave = self._books.waves.processed(event.wave_id, event.seconds)
        outcomes = self._judged(in_order(wave.attempts, event.outcomes))
        yield from self._store_positions(outcomes)
        for outcome in outcomes:
            record = self._transactions.record_of(outcome.attempt)
            if record is None:
                continue
            if outcome.failure is not None:
                yield from self._failures.failed(outcome.attempt, Phase.PROCESSING, outcome.failure)
            else:
                record.move(AttemptState.PROCESSED).outcome = outcome
        self._commits.keep_early(event.executed)

    def crashed(self, event: WaveCrashed) -> Iterator[Decision]:
        """Handles a wave whose processing phase ended without naming an attempt."""
        reason, kind = self._books.causes.of(event)
        attempts = self._books.waves.crashed(event.wave_id, halves=kind is not CrashKind.WAITED).attempts
        if kind is CrashKind.OVERDUE:
            self._books.waves.size.keep_below(len(attempts))
            self._commits.early.turn_off()  # in separate jobs, each phase has the whole timeout
        what = f"wave {event.wave_id} of {counted(len(attempts), 'attempt')}"
        yield from self._failures.crashed(attempts, Phase.PROCESSING, what, reason, kind)

    def give_up_overdue(self) -> Iterator[Decision]:
        """Cancels waves that exceed the message timeout."""
        for wave in self._books.waves.overdue(self._books.now_s):
            about = fields(wave=wave.wave_id, txid=wave.attempts[0].txid, last_txid=wave.attempts[-1].txid)
            _LOG.warning("wave %d exceeds the message timeout and is cancelled", wave.wave_id, extra=about)
            self._books.causes.cancelled(wave.wave_id)
            yield CancelWave(wave.wave_id)

    def _stored(self, first: TransactionRecord) -> Mapping[str, Mapping[int, Any]]:
        """Returns the positions from which a wave's emitters continue; a republished batch has its own."""
        if first.republished is None:
            return self._books.positions.by_scope()
        return first.republished.continues_from(first.txid, is_opaque=self._plan.is_opaque)

    def _batch(self, record: TransactionRecord, current: ActiveAttempt) -> Batch:
        packed, republished = pack(record.metadata), record.republished
        if republished is not None:
            scopes = frozenset(republished.batch.positions) if self._plan.is_opaque else None
            return Batch(current.attempt, packed, republished.batch.number, scopes, bool(republished.letters))
        number = self._books.metadata.number_of(record.txid)
        number_if_other = None if number == record.txid else number
        return Batch(current.attempt, packed, number_if_other, byte_count=record.byte_count)

    def _judged(self, reported: list[AttemptResult]) -> list[AttemptResult]:
        """Returns a wave's outcomes, failed where emitters read the wrong input; records what they have cut."""
        first = self._transactions.record_of(reported[0].attempt)
        if first is not None and first.republished is not None:
            return [first.republished.checked(reported[0], self._plan)]
        outcomes = list(chained(reported, self._books.positions.by_scope()))
        for outcome in outcomes:
            record, failure = self._transactions.record_of(outcome.attempt), outcome.failure
            has_cut = failure is None or (failure.is_of_batch() and failure.component_id != self._plan.spout_id)
            if record is not None and has_cut:
                record.cut = EmittersCut(outcome.metadata, outcome.began_from)
        return outcomes

    def _store_positions(self, outcomes: Iterable[AttemptResult]) -> Iterator[Decision]:
        """Stores the positions that emitters cut, up to the first failure, before the commit phase."""
        if self._plan.is_opaque:
            return
        good: list[AttemptResult] = []
        for outcome in outcomes:
            if outcome.failure is not None or not self._transactions.is_current(outcome.attempt):
                break
            good.append(outcome)
        if entries := self._books.metadata.note_positions(good):
            yield StoreMetadata(entries)
