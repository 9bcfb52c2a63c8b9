"""Records how every attempt of a run ended, and holds phases that a test acks or fails by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from coordinated_bolt.completeness.failure import Failure, FailureKind
from coordinator.transactional.engine import FailedByHand, GroupExecuted
from coordinator.watching.failure_cause import Phase
from coordinator.watching.run_observer import AttemptsFailed, AttemptsIssued, GroupCommitted, Observation, WaveEnded
from state.attempt import TransactionAttempt

BY_HAND = "by hand"


def phase_of(name: str) -> Phase:
    """Returns the phase with a name.

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
    """One attempt and how it ended.

    Attributes:
        attempt: its identity.
        end: its state; equals "under way", "committed", "failed" or "dropped".
        phase: the phase in which it failed or, if it was dropped, the lower attempt failed; None without a failure.
        reason: why it failed, with component and task, or why it was dropped; "" otherwise.
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
        phase: the held phase; equals "processing" or "commit".
    """

    attempt: TransactionAttempt
    phase: Phase


@dataclass(frozen=True, slots=True)
class _Waiting:
    phase: Phase
    since_s: float
    executed: GroupExecuted | None = None


class AttemptBook:
    """Observes a run: keeps a record of every attempt, and holds phases on request.

    `commit_limit` holds a processing phase, because no group reaches it. The engine holds a commit phase: it asks
    `holds`, and keeps the group until it is acked.

    Args:
        deliver: passes an event to the coordinator, for its next turn; None only requests a turn.
        clock: the run's clock, in seconds.
        timeout_s: a phase that is held longer than this fails.
    """

    def __init__(
        self,
        deliver: Callable[[GroupExecuted | FailedByHand | None], None],
        clock: Callable[[], float],
        timeout_s: float,
    ) -> None:
        self._deliver, self._clock, self._timeout_s = deliver, clock, timeout_s
        self._records: dict[TransactionAttempt, AttemptRecord] = {}
        self._rules: set[tuple[Phase, int | None]] = set()
        self._waiting: dict[TransactionAttempt, _Waiting] = {}
        self._failing: set[TransactionAttempt] = set()
        self._let_go: set[tuple[Phase, TransactionAttempt]] = set()

    def records(self, txid: int | None) -> list[AttemptRecord]:
        """Returns the records of all attempts, or of attempts at a txid, in the order in which they were issued."""
        return [record for record in self._records.values() if txid in (None, record.attempt.txid)]

    def held(self) -> list[HeldPhase]:
        """Returns the phases that are held, by txid."""
        return [HeldPhase(attempt, self._waiting[attempt].phase) for attempt in sorted(self._waiting)]

    def held_group(self, txid: int) -> GroupExecuted | None:
        """Returns the group of a transaction whose commit phase is held."""
        return next((held.executed for attempt, held in self._waiting.items() if attempt.txid == txid), None)

    def held_waves(self) -> tuple[int, ...]:
        """Returns the waves of groups whose commit phase is held: they do not run, so their timeouts do not count."""
        return tuple(held.executed.wave_id for held in self._waiting.values() if held.executed is not None)

    def hold(self, phase: Phase, txids: Sequence[int]) -> None:
        """Holds this phase of all further attempts at these txids, or at every txid if none is given."""
        self._rules |= {(phase, txid) for txid in txids or (None,)}

    def release(self, phase: Phase, txids: Sequence[int]) -> None:
        """Stops holding this phase at these txids, or at every txid if none is given, and acks the held phases."""
        self._rules = {rule for rule in self._rules if rule[0] is not phase or (txids and rule[1] not in txids)}
        for held in self.held():
            if held.phase is phase and not self._is_held(phase, held.attempt):
                self.end(held.attempt.txid, None)

    def end(self, txid: int, reason: str | None) -> None:
        """Ends the held phase of a txid; the phase fails if a reason is given, and succeeds otherwise.

        Raises:
            ValueError: no phase is held at this txid.
        """
        attempt = next((attempt for attempt in self._waiting if attempt.txid == txid), None)
        if attempt is None:
            held = ", ".join(f"{held.phase} of {held.attempt}" for held in self.held())
            raise ValueError(f"no phase of transaction {txid} is held; held: {held or 'none'}")
        waiting = self._waiting.pop(attempt)
        self._let_go.add((waiting.phase, attempt))
        if reason is None:
            self._deliver(waiting.executed)
        else:
            failure = Failure(FailureKind.FAILED, BY_HAND, 0, reason)
            self._failing.add(attempt)
            self._deliver(FailedByHand(attempt, failure, waiting.executed))

    def fail_overdue(self) -> None:
        """Fails phases that are held longer than the message timeout, as a real run would."""
        now_s = self._clock()
        for held in self.held():
            if now_s - self._waiting[held.attempt].since_s > self._timeout_s:
                self.end(held.attempt.txid, f"its {held.phase} phase exceeded the message timeout")

    def __call__(self, observation: Observation) -> None:
        """Takes an observation; see `coordinator.watching.run_observer`."""
        match observation:
            case AttemptsIssued(attempts):
                self._records |= {attempt: AttemptRecord(attempt) for attempt in attempts}
            case WaveEnded(outcomes=outcomes):
                for outcome in outcomes:
                    if outcome.failure is None and self._is_held(Phase.PROCESSING, outcome.attempt):
                        self._waiting[outcome.attempt] = _Waiting(Phase.PROCESSING, self._clock())
            case GroupCommitted(attempts):
                for attempt in attempts:
                    self._records[attempt] = replace(self._records[attempt], end=AttemptEnd.COMMITTED)
            case AttemptsFailed((first, *others) as attempts, phase, _, reason):
                self._records[first] = AttemptRecord(first, AttemptEnd.FAILED, Phase(phase), reason)
                for attempt in others:
                    dropped = AttemptRecord(attempt, AttemptEnd.DROPPED, Phase(phase), f"attempt {first} failed")
                    self._records[attempt] = dropped
                for attempt in attempts:
                    self._waiting.pop(attempt, None)
                    self._failing.discard(attempt)
            case _:
                pass

    def holds(self, executed: GroupExecuted) -> bool:
        """Returns whether to hold a group whose commit phase has run; called once per group."""
        attempt = next((attempt for attempt in executed.attempts if self._is_held(Phase.COMMIT, attempt)), None)
        failed = any(report.results.failure is not None for report in executed.reports)
        if attempt is None or failed:
            return False
        self._waiting[attempt] = _Waiting(Phase.COMMIT, self._clock(), executed)
        return True

    def commit_limit(self, currtx: int, limit: int) -> int:
        """Returns a limit that excludes held processing phases; a commit phase to be held is alone in its group."""
        waiting = (attempt for attempt, each in self._waiting.items() if each.phase is Phase.PROCESSING)
        held = [attempt.txid - currtx for attempt in (*waiting, *self._failing)]
        if (Phase.COMMIT, None) in self._rules:
            return min([1, *held])
        alone = [txid - currtx for phase, txid in self._rules if phase is Phase.COMMIT and txid and txid >= currtx]
        return min([max(1, min([limit, *alone])), *held])

    def _is_held(self, phase: Phase, attempt: TransactionAttempt) -> bool:
        record = self._records.get(attempt)
        if record is None or record.end is not AttemptEnd.UNDER_WAY:
            return False
        ruled = not self._rules.isdisjoint({(phase, None), (phase, attempt.txid)})
        return ruled and (phase, attempt) not in self._let_go
