"""Handles failures in a run: drops attempts, cancels waves, and halts the run on some errors. Pure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from coordinated_bolt.completeness.failure import Failure
from coordinator.transactional.engine import CrashKind
from coordinator.transactional.machine.attempt_record import AttemptRecord
from coordinator.transactional.machine.run_books import RunBooks
from coordinator.transactional.machine.run_events import Attempts, CancelWave, Decision, Dropped, Replayed
from coordinator.transactional.phase import Phase
from state.attempt import TransactionAttempt
from state.errors import EngineError, ReplayLimitError, TransactionError

_LOG = logging.getLogger("txbatch")


class Failures:
    """Drops what has failed, and keeps the error that ends the run once everything lower is committed.

    Args:
        books: of the run.

    Attributes:
        error: ends the run once everything lower is committed; None while nothing halts it.
        halt_before: the first txid that is not attempted any more.
    """

    def __init__(self, books: RunBooks) -> None:
        self._books = books
        self.error: TransactionError | None = None
        self.halt_before: int | None = None

    def is_halted(self) -> bool:
        """Returns whether the run is to halt and everything below the halt is committed."""
        return self.halt_before is not None and self._books.transactions.currtx >= self.halt_before

    def window_end(self, end: int) -> int:
        """Returns the first txid that is not to be attempted, for a window that ends at `end`."""
        return end if self.halt_before is None else min(end, self.halt_before)

    def failed(self, attempt: TransactionAttempt, phase: Phase, failure: Failure) -> Iterator[Decision]:
        """Handles an attempt that is itself at fault."""
        if failure.halts():
            yield from self._halt(attempt, phase, failure.to_error(attempt), str(failure))
            return
        yield Replayed(attempt, str(failure))
        yield from self._lose(attempt, phase, str(failure), is_to_blame=True)

    def crashed(self, attempts: Attempts, phase: Phase, what: str, reason: str, kind: CrashKind) -> Iterator[Decision]:
        """Handles a phase that ended without naming an attempt: an attempt is to blame only if it was alone in it."""
        live = [attempt for attempt in attempts if self._books.transactions.is_current(attempt)]
        if not live:
            return
        _LOG.warning("%s crashed: %s", what, reason)
        if kind is CrashKind.CERTAIN:
            told = f"Spark cannot run txid {live[0].txid}: {reason}; lower txids are committed"
            yield from self._halt(live[0], phase, EngineError(told), reason)
        else:
            yield from self._lose(live[0], phase, reason, is_to_blame=len(attempts) == 1)

    def refused(self, attempt: TransactionAttempt, error: TransactionError) -> Iterator[Decision]:
        """Handles a transaction that the store refused although it was alone in its group."""
        yield from self._halt(attempt, Phase.COMMIT, error, str(error))

    def halt_now(self, error: TransactionError, reason: str) -> Iterator[Decision]:
        """Halts the run before the next commit, although no attempt has failed."""
        self._halt_at(self._books.transactions.currtx, error)
        yield from self._let_go(self._books.transactions.drop_from(self._books.transactions.currtx, reason))

    def validate(self, active: Iterable[int]) -> None:
        """Checks that no attempt at or above the halt is active.

        Raises:
            AssertionError: one is.
        """
        assert (self.error is None) == (self.halt_before is None), "a halt without an error, or an error without a halt"
        assert self.halt_before is None or max(active, default=0) < self.halt_before, "an attempt beyond the halt"

    def _halt(
        self, attempt: TransactionAttempt, phase: Phase, error: TransactionError, reason: str
    ) -> Iterator[Decision]:
        self._halt_at(attempt.txid, error)
        yield from self._drop_from(attempt.txid, phase, reason)

    def _halt_at(self, txid: int, error: TransactionError) -> None:
        """Lets lower transactions commit before the run ends; a later halt never has a higher txid."""
        self.error, self.halt_before = error, txid

    def _lose(self, attempt: TransactionAttempt, phase: Phase, reason: str, *, is_to_blame: bool) -> Iterator[Decision]:
        record = self._books.transactions[attempt.txid]
        yield from self._drop_from(attempt.txid, phase, reason)
        record.failure_count += is_to_blame
        if record.failure_count >= self._books.options.max_attempts:
            self._halt_at(attempt.txid, ReplayLimitError(attempt.txid, record.failure_count, reason))

    def _drop_from(self, txid: int, phase: Phase, reason: str) -> Iterator[Decision]:
        """Drops the attempt and all later ones; those that only waited for a wave do not count as failed."""
        dropped = self._books.transactions.drop_from(txid, reason)
        self._books.statistics.failed_attempts += sum(ended.wave_id != 0 for ended in dropped)
        yield Dropped(tuple(ended.attempt for ended in dropped), phase, reason)
        yield from self._let_go(dropped)

    def _let_go(self, dropped: list[AttemptRecord]) -> Iterator[Decision]:
        """Cancels waves whose attempts are all gone."""
        for ended in dropped:
            self._books.waves.let_go(ended.wave_id, ended.attempt)
        self._books.statistics.failed_outcomes(ended.outcome for ended in dropped if ended.outcome is not None)
        yield from map(CancelWave, self._books.waves.running_for_nothing({ended.wave_id for ended in dropped}))
