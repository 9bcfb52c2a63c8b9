"""What the coordinator asks of an engine, and what it is told: commands in, events out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from committers.task_report import TaskReport
from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinated_bolt.completeness.failure import Failure
from coordinator.emitting.emitter_task import Batch
from state.attempt import TransactionAttempt


@dataclass(frozen=True, slots=True)
class EarlyCommit:
    """Groups whose commit phase is wanted together with the processing phase.

    Attributes:
        groups: the attempts of the wave in order, cut into groups; or none.
        composed: as in `Engine.commit`.
    """

    groups: tuple[tuple[TransactionAttempt, ...], ...] = ()
    composed: bool = True


@dataclass(frozen=True, slots=True)
class GroupExecuted:
    """The commit phase of a group has run; nothing is published yet."""

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    reports: tuple[TaskReport, ...]


@dataclass(frozen=True, slots=True)
class WaveProcessed:
    """The processing phase of a wave is over, well or not attempt by attempt.

    Attributes:
        wave_id: the wave.
        outcomes: what the ackers say of each attempt.
        executed: groups whose commit phase has run early; may lack any that were wanted.
    """

    wave_id: int
    outcomes: tuple[AttemptOutcome, ...]
    executed: tuple[GroupExecuted, ...] = ()


class CrashKind(Enum):
    """What follows from a crash."""

    LOST = "lost"
    """A worker died, or something else that may not happen again: try again, with less."""
    OVERDUE = "overdue"
    """It took too long: try again, with less, and never again with as much."""
    CERTAIN = "certain"
    """Another try would end in the same way: stop."""


@dataclass(frozen=True, slots=True)
class WaveCrashed:
    """The processing phase of a wave ended without naming an attempt: a worker died, or it hung."""

    wave_id: int
    reason: str
    kind: CrashKind = CrashKind.LOST


@dataclass(frozen=True, slots=True)
class GroupCrashed:
    """The commit phase of a group ended without a verdict."""

    wave_id: int
    attempts: tuple[TransactionAttempt, ...]
    reason: str
    kind: CrashKind = CrashKind.LOST


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    """A phase that was held (see `AttemptWatch`) ends now.

    Attributes:
        attempt: the attempt it was held for.
        held: what had come of it: the outcome of a processing phase, or the group of a commit phase.
        wave_id: the attempt's wave.
        failure: why it is to count as failed; None if it went well.
    """

    attempt: TransactionAttempt
    held: AttemptOutcome | GroupExecuted
    wave_id: int
    failure: Failure | None = None


Event = WaveProcessed | WaveCrashed | GroupExecuted | GroupCrashed | PhaseEnded


class Engine(Protocol):
    """Runs waves. Every call returns at once; `next_event` tells what came of it.

    At most one wave is in its processing phase and one group in its commit phase at a time; whether
    the two may overlap is `overlaps`.
    """

    overlaps: bool

    def process(
        self,
        wave_id: int,
        batches: tuple[Batch, ...],
        stored: Mapping[str, Mapping[int, Any]],
        early: EarlyCommit,
    ) -> None:
        """Starts the processing phase of a wave, and the commit phase of `early` with it.

        There committers must be refused to read state, for what is below their group may not be committed yet.
        An engine may leave `early` out.
        """

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        """Starts the commit phase of some attempts of a processed wave."""

    def cancel(self, wave_id: int) -> None:
        """Gives up what runs for a wave; its event still comes."""

    def release(self, wave_id: int) -> None:
        """Lets go of all that is kept for a wave; no event of it matters any more."""

    def next_event(self, timeout_s: float) -> Event | None:
        """The next event, or None after the time.

        Raises:
            EngineError: nothing can be run any more.
        """

    def close(self) -> None:
        """Cancels what runs and lets go of everything."""
