"""Handles failures in a run: drops attempts, cancels waves, gives up poison, and halts the run. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from committers.task_report import Work
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.machine.poison import Poison, batch_input_of
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import CancelWave, Decision
from coordinator.transactional.machine.transaction_record import ActiveAttempt, TransactionRecord
from coordinator.watching.failure_cause import CrashKind, FailureCause, Phase, raised
from coordinator.watching.log_records import fields
from coordinator.watching.run_observer import AttemptRetried, AttemptsFailed
from state.attempt import Attempts, TransactionAttempt
from state.commits.quarantine import PoisonCause
from state.errors import EngineError, NotRepublishableError, ReplayLimitError, TransactionError
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why an attempt is lost.

    Attributes:
        reason: the reason in words.
        counts_as: the cause under which observers count the fault.
        is_counted: the attempt itself is to blame.
        is_of_batch: the attempt is to blame because of its batch.
        failure: the failure a task reported; None after a crash or a refusal.
        suspects: see `AttemptsFailed`.
        worked: see `AttemptsFailed`.
    """

    reason: str
    counts_as: FailureCause
    is_counted: bool = True
    is_of_batch: bool = True
    failure: Failure | None = None
    suspects: Attempts = ()
    worked: Work = ()

    def cause(self, attempt_count: int) -> PoisonCause:
        """Returns the recorded cause of a batch whose last fault this is."""
        failure = self.failure
        if failure is None:
            return PoisonCause(self.reason, attempt_count)
        has_traceback = failure.kind is FailureKind.USER
        return PoisonCause(
            reason=raised(failure.text) if has_traceback else failure.text,
            attempt_count=attempt_count,
            component_id=failure.component_id,
            task_index=failure.task_index,
            traceback_text=failure.text if has_traceback else "",
            tuple_text=failure.tuple_text,
        )


class Failures:
    """Drops failed attempts, and keeps the error that ends the run once everything lower is committed.

    Args:
        books: the run's books.

    Attributes:
        error: ends the run once everything lower is committed; None while nothing halts it.
        halt_before: the first txid that is not attempted any more.
        poison: the batch to set aside once everything lower is committed; None if there is none.
        quarantined: the txids whose batches were set aside.
    """

    def __init__(self, books: RunBooks) -> None:
        self._books = books
        self.error: TransactionError | None = None
        self.halt_before: int | None = None
        self.poison: Poison | None = None
        self.quarantined: set[int] = set()

    def is_halted(self) -> bool:
        """Returns whether the run halts and everything below the halt is committed."""
        return self.halt_before is not None and self._books.transactions.currtx >= self.halt_before

    def due_poison(self) -> Poison | None:
        """Returns the batch to set aside now, None unless everything below it is committed."""
        poison = self.poison
        return poison if poison is not None and self._books.transactions.currtx == poison.txid else None

    def window_end(self, end: int) -> int:
        """Returns the first txid that is not to be attempted, for a window that ends at `end`."""
        bounds = [end] if self.halt_before is None else [end, self.halt_before]
        return min(bounds if self.poison is None else [*bounds, self.poison.txid])

    # What goes wrong

    def failed(
        self, attempt: TransactionAttempt, phase: Phase, failure: Failure, worked: Work = ()
    ) -> Iterator[Decision]:
        """Handles an attempt that failed by itself."""
        record = self._books.transactions[attempt.txid]
        is_of_batch, counts_as = self._is_of_batch(failure), FailureCause.of(failure.kind)
        if failure.halts() and not (is_of_batch and self._may_quarantine(record)):
            error = _error_of(record, failure, attempt)
            yield from self._halt(attempt, phase, error, _Fault(str(failure), counts_as, worked=worked))
            return
        yield AttemptRetried(attempt, str(failure), self._books.transactions.wave_of((attempt,)))
        fault = _Fault(str(failure), counts_as, is_of_batch=is_of_batch, failure=failure, worked=worked)
        yield from self._lose(attempt, phase, fault)

    def crashed(self, attempts: Attempts, phase: Phase, what: str, reason: str, kind: CrashKind) -> Iterator[Decision]:
        """Handles a phase that ended without naming an attempt: an attempt is to blame only if it was alone in it."""
        live = tuple(attempt for attempt in attempts if self._books.transactions.is_current(attempt))
        if not live:
            return
        wave, counts_as = self._books.transactions.wave_of(live[:1]), FailureCause.of(kind)
        about = fields(wave=wave, txid=live[0].txid, last_txid=live[-1].txid, phase=str(phase), reason=reason)
        _LOG.warning("%s crashed%s: %s", what, _culprit(attempts, kind), reason, extra=about)
        if kind is CrashKind.CERTAIN:
            sentence = f"Spark cannot run txid {live[0].txid}: {reason}; lower txids are committed"
            yield from self._halt(live[0], phase, EngineError(sentence), _Fault(reason, counts_as))
        elif len(attempts) == 1:
            is_counted = kind is not CrashKind.WAITED
            is_of_batch = kind is not CrashKind.ENGINE
            fault = _Fault(reason, counts_as, is_counted=is_counted, is_of_batch=is_of_batch)
            yield from self._lose(live[0], phase, fault)
        else:
            where = f"wave {wave}" if phase is Phase.PROCESSING else f"the commit phase of wave {wave}"
            sentence = f"{where} crashed{_culprit(attempts, kind)}: {reason}" if kind is CrashKind.LOST else reason
            yield from self._lose(live[0], phase, _Fault(sentence, counts_as, is_counted=False, suspects=live))

    def refused(self, attempt: TransactionAttempt, error: TransactionError) -> Iterator[Decision]:
        """Handles a transaction that the store refused although it was alone in its group: a replay would not help.

        If only the room for dead letters is exhausted, the batch is not to blame.
        """
        record = self._books.transactions[attempt.txid]
        fault = _Fault(str(error), FailureCause.STATE_REFUSED)
        if error.trouble is Trouble.DEAD_LETTER_LIMIT or not self._may_quarantine(record):
            yield from self._halt(attempt, Phase.COMMIT, error, fault)
            return
        yield from self._drop_from(attempt.txid, Phase.COMMIT, fault)
        record.failure_count += 1
        record.own_failure_count += 1
        self._give_up(record, fault, error)

    def not_set_aside(self, attempt: TransactionAttempt, error: TransactionError) -> Iterator[Decision]:
        """Handles a store that refused to set a batch aside."""
        self.poison = None
        yield from self._halt(attempt, Phase.COMMIT, error, _Fault(str(error), FailureCause.STATE_REFUSED))

    def set_aside(self) -> None:
        """Records that the poison is quarantined."""
        assert self.poison is not None, "nothing was to be set aside"
        self.quarantined.add(self.poison.txid)
        self.poison = None

    def halt_now(self, error: TransactionError, reason: str) -> Iterator[Decision]:
        """Halts the run before the next commit, although no attempt has failed."""
        self._halt_at(self._books.transactions.currtx, error)
        self.poison = None
        yield from self._let_go(self._books.transactions.drop_from(self._books.transactions.currtx, reason))

    def validate(self, active: Iterable[int]) -> None:
        """Checks that no attempt is active at or above the halt, or above poison.

        Raises:
            AssertionError: one is active.
        """
        highest = max(active, default=0)
        assert (self.error is None) == (self.halt_before is None), "a halt without an error, or an error without a halt"
        assert self.halt_before is None or highest < self.halt_before, "an attempt beyond the halt"
        assert self.poison is None or highest <= self.poison.txid, "an attempt beyond poison"
        if self.poison is not None and self.halt_before is not None:
            assert self.poison.txid < self.halt_before, "poison in a run that halts below it, or at it"

    # What follows

    def _is_of_batch(self, failure: Failure) -> bool:
        """Returns whether the batch is to blame; a spout that asks for another attempt cannot read any input now."""
        is_asking = failure.kind is FailureKind.FAILED and failure.component_id == self._books.plan.spout_id
        return failure.is_of_batch() and not is_asking

    def _may_quarantine(self, record: TransactionRecord) -> bool:
        """Returns whether poison may be quarantined; a republished batch still is, since its record stays."""
        return self._books.options.quarantines and record.republished is None

    def _halt(
        self, attempt: TransactionAttempt, phase: Phase, error: TransactionError, fault: _Fault
    ) -> Iterator[Decision]:
        self._halt_at(attempt.txid, error)
        yield from self._drop_from(attempt.txid, phase, fault)

    def _halt_at(self, txid: int, error: TransactionError) -> None:
        """Lets lower transactions commit before the run ends; a later halt never has a higher txid."""
        self.error, self.halt_before = error, txid

    def _lose(self, attempt: TransactionAttempt, phase: Phase, fault: _Fault) -> Iterator[Decision]:
        record = self._books.transactions[attempt.txid]
        yield from self._drop_from(attempt.txid, phase, fault)
        if not fault.is_counted:
            return
        record.failure_count += 1
        record.own_failure_count += fault.is_of_batch
        options = self._books.options
        record.retry_at_s = self._books.now_s + options.pause_s(record.failure_count)
        own, others = record.own_failure_count, record.failure_count - record.own_failure_count
        if fault.counts_as is FailureCause.ENGINE and others >= options.max_attempts:
            self._halt_at(attempt.txid, EngineError(_not_the_batch(attempt.txid, others, fault.reason)))
        elif not self._may_quarantine(record):
            if record.failure_count >= options.max_attempts:
                self._halt_at(attempt.txid, ReplayLimitError(attempt.txid, record.failure_count, fault.reason))
        elif others >= options.max_attempts:
            self._halt_at(attempt.txid, ReplayLimitError(attempt.txid, others, fault.reason))
        elif own >= options.max_attempts:
            self._give_up(record, fault, _final_error(attempt, own, fault))

    def _give_up(self, record: TransactionRecord, fault: _Fault, error: TransactionError) -> None:
        """Sets the batch aside, or halts if no attempt has reported where it ends."""
        books = self._books
        number = books.metadata.number_of(record.txid)
        batch = batch_input_of(record, books.plan, books.positions.by_scope(), number=number)
        if batch is None:
            _LOG.error(
                "txid %d cannot be quarantined, because no attempt has reported where its batch ends; the run halts",
                record.txid,
                extra=fields(txid=record.txid, reason=fault.reason),
            )
            self._halt_at(record.txid, error)
        else:
            self.poison = Poison(record.txid, batch, fault.cause(record.own_failure_count), error)

    def _drop_from(self, txid: int, phase: Phase, fault: _Fault) -> Iterator[Decision]:
        """Drops the attempt and all later ones.

        Poison above it is attempted once more, because its batch may begin elsewhere now.
        """
        if self.poison is not None and txid < self.poison.txid:
            self.poison = None
        dropped = self._books.transactions.drop_from(txid, fault.reason)
        attempts = tuple(ended.attempt for ended in dropped)
        yield AttemptsFailed(attempts, phase, fault.counts_as, fault.reason, fault.suspects, fault.worked)
        yield from self._let_go(dropped)

    def _let_go(self, dropped: list[ActiveAttempt]) -> Iterator[Decision]:
        """Cancels waves whose attempts are all gone."""
        for ended in dropped:
            self._books.waves.let_go(ended.wave_id, ended.attempt)
        yield from map(CancelWave, self._books.waves.running_for_nothing({ended.wave_id for ended in dropped}))


def _not_the_batch(txid: int, count: int, reason: str) -> str:
    return (
        f"Spark failed {count} times at txid {txid}, where no batch is to blame: {reason}; lower txids are committed; "
        "see what is wrong with Spark and its machines, and run again in a new session"
    )


def _culprit(attempts: Attempts, kind: CrashKind) -> str:
    """Returns the known facts about the culprit of a crash that hit several attempts."""
    if kind is not CrashKind.LOST or len(attempts) == 1:
        return ""
    return f"; one of txids {attempts[0].txid} to {attempts[-1].txid}, not known which"


def _error_of(record: TransactionRecord, failure: Failure, attempt: TransactionAttempt) -> TransactionError:
    """Returns the error with which a run halts on a failure."""
    if record.republished is not None and failure.kind is FailureKind.SOURCE:
        return NotRepublishableError(record.republished.txid, failure.text)
    return failure.to_error(attempt)


def _final_error(attempt: TransactionAttempt, count: int, fault: _Fault) -> TransactionError:
    """Returns the error of a batch that is given up: its last failure if that halts, else the exceeded replay limit."""
    if fault.failure is not None and fault.failure.halts():
        return fault.failure.to_error(attempt)
    return ReplayLimitError(attempt.txid, count, fault.reason)
