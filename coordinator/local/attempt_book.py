"""Records what became of every attempt of a run, and holds phases that a test acks or fails by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from coordinated_bolt.batches.attempt_result import AttemptResult
from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.attempt_watch import AttemptWatch
from coordinator.transactional.engine import GroupExecuted, PhaseEnded
from coordinator.transactional.phase import Phase
from state.attempt import TransactionAttempt

BY_HAND = "by hand"


def phase_of(name: str) -> Phase:
    """Returns the phase of that name.

    Raises:
        ValueError: there is no such phase.
    """
    if name not in list(Phase):
        raise ValueError(f"phase is {name!r}; give 'processing' or 'commit'")
    return Phase(name)


class AttemptEnd(StrEnum):
    """The state of an attempt, as tests see it."""

    UNDER_WAY = "under way"
    COMMITTED = "committed"
    FAILED = "failed"
    DROPPED = "dropped"
    """A lower transaction failed, so this one is replayed too."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt and what became of it.

    Attributes:
        attempt: its identity.
        end: its state; equals "under way", "committed", "failed" or "dropped".
        phase: the phase in which it, or the attempt that it was dropped with, failed; None if none did.
        reason: why it failed, with component and task, or why it was dropped; "" if neither.
    """

    attempt: TransactionAttempt
    end: AttemptEnd = AttemptEnd.UNDER_WAY
    phase: Phase | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HeldPhase:
    """A phase that has run and waits to be acked or failed by hand.

    Attributes:
        attempt: the attempt whose phase is held.
        phase: which of its phases; equals "processing" or "commit".
    """

    attempt: TransactionAttempt
    phase: Phase


@dataclass(frozen=True, slots=True)
class _Waiting:
    phase: Phase
    wave_id: int
    held: AttemptResult | GroupExecuted
    since_s: float


class AttemptBook(AttemptWatch):
    """Keeps a record of every attempt, and holds the phases that it was asked to hold.

    Args:
        deliver: passes an event to the coordinator, for its next turn.
        clock: the run's clock, in seconds.
        timeout_s: a phase that is held longer than this fails.
    """

    def __init__(self, deliver: Callable[[PhaseEnded], None], clock: Callable[[], float], timeout_s: float) -> None:
        self._deliver, self._clock, self._timeout_s = deliver, clock, timeout_s
        self._records: dict[TransactionAttempt, AttemptRecord] = {}
        self._rules: set[tuple[Phase, int | None]] = set()
        self._waiting: dict[TransactionAttempt, _Waiting] = {}
        self._let_go: set[tuple[Phase, TransactionAttempt]] = set()

    def records(self, txid: int | None) -> list[AttemptRecord]:
        """Returns the records of all attempts, or of those at a txid, in the order in which they were issued."""
        return [record for record in self._records.values() if txid in (None, record.attempt.txid)]

    def held(self) -> list[HeldPhase]:
        """Returns the phases that are held, by txid."""
        return [HeldPhase(attempt, self._waiting[attempt].phase) for attempt in sorted(self._waiting)]

    def held_group(self, txid: int) -> GroupExecuted | None:
        """Returns the group of a transaction whose commit phase is held."""
        held = (waiting.held for attempt, waiting in self._waiting.items() if attempt.txid == txid)
        return next((each for each in held if isinstance(each, GroupExecuted)), None)

    def hold(self, phase: Phase, txids: Sequence[int]) -> None:
        """Holds this phase of all further attempts at these txids, or at every txid if none is given."""
        self._rules |= {(phase, txid) for txid in txids or (None,)}

    def release(self, phase: Phase, txids: Sequence[int]) -> None:
        """Stops holding this phase at these txids, or at every txid if none is given, and acks what is held."""
        self._rules = {rule for rule in self._rules if rule[0] is not phase or (txids and rule[1] not in txids)}
        for held in self.held():
            if held.phase is phase and not self._is_held(phase, held.attempt):
                self.end(held.attempt.txid, None)

    def end(self, txid: int, reason: str | None) -> None:
        """Ends the phase that is held at a txid; it fails if there is a reason, and else succeeds.

        Raises:
            ValueError: nothing is held at this txid.
        """
        attempt = next((attempt for attempt in self._waiting if attempt.txid == txid), None)
        if attempt is None:
            held = ", ".join(f"{held.phase} of {held.attempt}" for held in self.held())
            raise ValueError(f"no phase of transaction {txid} is held; held: {held or 'none'}")
        waiting = self._waiting.pop(attempt)
        self._let_go.add((waiting.phase, attempt))
        failure = None if reason is None else Failure(FailureKind.FAILED, BY_HAND, 0, reason)
        self._deliver(PhaseEnded(attempt, waiting.held, waiting.wave_id, failure))

    def fail_overdue(self) -> None:
        """Fails phases that are held longer than the message timeout, as a real run would."""
        now_s = self._clock()
        for held in self.held():
            if now_s - self._waiting[held.attempt].since_s > self._timeout_s:
                self.end(held.attempt.txid, f"its {held.phase} phase exceeded the message timeout")

    def issued(self, attempt: TransactionAttempt) -> None:
        self._records[attempt] = AttemptRecord(attempt)

    def committed(self, attempts: Sequence[TransactionAttempt]) -> None:
        for attempt in attempts:
            self._records[attempt] = replace(self._records[attempt], end=AttemptEnd.COMMITTED)

    def failed(self, attempts: Sequence[TransactionAttempt], phase: Phase, reason: str) -> None:
        first, *others = attempts
        self._records[first] = AttemptRecord(first, AttemptEnd.FAILED, phase, reason)
        for attempt in others:
            self._records[attempt] = AttemptRecord(attempt, AttemptEnd.DROPPED, phase, f"attempt {first} failed")
        for attempt in attempts:
            self._waiting.pop(attempt, None)

    def holds_processing(self, wave_id: int, outcome: AttemptResult) -> bool:
        attempt = outcome.attempt
        if not self._is_held(Phase.PROCESSING, attempt):
            return False
        self._waiting[attempt] = _Waiting(Phase.PROCESSING, wave_id, outcome, self._clock())
        return True

    def holds_commit(self, event: GroupExecuted) -> bool:
        attempt = next((attempt for attempt in event.attempts if self._is_held(Phase.COMMIT, attempt)), None)
        failed = any(result.failure is not None for report in event.reports for result in report.results)
        if attempt is None or failed:
            return False
        self._waiting[attempt] = _Waiting(Phase.COMMIT, event.wave_id, event, self._clock())
        return True

    def commit_limit(self, currtx: int, limit: int) -> int:
        """Returns a limit that lets a held transaction commit alone, so that no other waits with it."""
        if (Phase.COMMIT, None) in self._rules:
            return 1
        txids = [txid for phase, txid in self._rules if phase is Phase.COMMIT and txid is not None and txid >= currtx]
        return max(1, min([limit, *(txid - currtx for txid in txids)]))

    def _is_held(self, phase: Phase, attempt: TransactionAttempt) -> bool:
        ruled = not self._rules.isdisjoint({(phase, None), (phase, attempt.txid)})
        return ruled and (phase, attempt) not in self._let_go
