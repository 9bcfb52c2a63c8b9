"""What the run machine is told, and what it answers: events in, decisions out. Plain data.

A driver carries decisions out in their order. Five of them have an answer, an event of its own that goes
into the machine before anything else happens: Cut, Publish, Tell, AskForEnd and, unless the watch holds the
phase, AskWatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinated_bolt.batches.batch_acker import AttemptOutcome
from coordinator.emitting.emitter_task import Batch
from coordinator.transactional.engine import (
    EarlyCommit,
    GroupCrashed,
    GroupExecuted,
    PhaseEnded,
    WaveCrashed,
    WaveProcessed,
)
from coordinator.transactional.phase import Phase
from state.attempt import TransactionAttempt
from state.errors import TransactionError
from state.transactional_state import MetadataChanges
from state.write_set import WriteSet

Attempts = tuple[TransactionAttempt, ...]

# Events


@dataclass(frozen=True, slots=True)
class Turn:
    """The driver is ready: commit, cut and start what is due.

    Attributes:
        now_s: the time.
        commit_limit: most transactions of a group that begins now, if the watch wants fewer than the options do.
    """

    now_s: float
    commit_limit: int | None = None


@dataclass(frozen=True, slots=True)
class TimePassed:
    """It is later: give up what takes too long."""

    now_s: float


@dataclass(frozen=True, slots=True)
class BatchCut:
    """The spout has cut a transaction; that takes as long as it takes.

    Attributes:
        txid: the transaction.
        metadata: what the spout's coordinator returned.
        now_s: the time.
        byte_count: about how much input the batch reads; 0 if unknown.
        notes: name -> what its commit is to store as a note.
    """

    txid: int
    metadata: Any
    now_s: float
    byte_count: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NothingToCut:
    """The spout has nothing for a txid now."""

    txid: int
    now_s: float


@dataclass(frozen=True, slots=True)
class Published:
    """The store has committed the group."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The store refused the group for its content and changed nothing.

    Attributes:
        error: what to end with if the group was a single transaction.
    """

    error: TransactionError


@dataclass(frozen=True, slots=True)
class Told:
    """The spout's committer was told what is durable.

    Attributes:
        error: what it raised.
    """

    error: TransactionError | None = None


@dataclass(frozen=True, slots=True)
class InputState:
    """How the input stands while nothing is under way.

    Attributes:
        is_exhausted: it has ended.
        is_draining: nothing more is wanted of it.
        is_finite: it ends by itself.
        error: what the spout has raised.
    """

    is_exhausted: bool = False
    is_draining: bool = False
    is_finite: bool = False
    error: TransactionError | None = None


EngineEvent = WaveProcessed | WaveCrashed | GroupExecuted | GroupCrashed | PhaseEnded
RunEvent = Turn | TimePassed | BatchCut | NothingToCut | Published | Refused | Told | InputState | EngineEvent

# Decisions


@dataclass(frozen=True, slots=True)
class Cut:
    """Have the spout cut a transaction; answered by BatchCut or NothingToCut.

    Attributes:
        txid: the transaction.
        previous: metadata of the one before.
        is_new: it was never cut before, so the spout is asked first whether it is ready.
    """

    txid: int
    previous: Any
    is_new: bool


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Store these metadata fields before anything that follows is carried out."""

    entries: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartWave:
    """Begin the processing phase of a wave."""

    wave_id: int
    batches: tuple[Batch, ...]
    early: EarlyCommit


@dataclass(frozen=True, slots=True)
class StartCommit:
    """Begin the commit phase of a group, in order."""

    wave_id: int
    attempts: Attempts
    composed: bool


@dataclass(frozen=True, slots=True)
class Publish:
    """Commit a group in one atomic step; answered by Published or Refused."""

    attempts: Attempts
    write_set: WriteSet
    metadata: MetadataChanges


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the spout's committer what is durable; answered by Told."""

    attempts: Attempts


@dataclass(frozen=True, slots=True)
class CancelWave:
    """Give up what runs for a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class ReleaseWave:
    """Let go of all that is kept for a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class RanEarly:
    """The commit phase of the group that is next has run with its wave: take this event, not the engine's next."""

    executed: GroupExecuted


@dataclass(frozen=True, slots=True)
class AskWatch:
    """A phase has ended well: ask the watch whether it may; answered by PhaseEnded, at once or, if it is held, later.

    Attributes:
        ended: what has come of it: the outcome of a processing phase, or the group of a commit phase.
        wave_id: the wave.
    """

    ended: AttemptOutcome | GroupExecuted
    wave_id: int


@dataclass(frozen=True, slots=True)
class Issued:
    """Attempts were issued."""

    attempts: Attempts


@dataclass(frozen=True, slots=True)
class Dropped:
    """The first of these attempts has failed; the others are above it and void with it.

    Attributes:
        attempts: ascending.
        phase: in which the first has failed.
        reason: why.
    """

    attempts: Attempts
    phase: Phase
    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """An attempt has failed by itself and its transaction is replayed: say so in the log."""

    attempt: TransactionAttempt
    reason: str


@dataclass(frozen=True, slots=True)
class AskForEnd:
    """Nothing is under way: ask how the input stands; answered by InputState.

    Attributes:
        last_metadata: of the highest txid cut so far, None before the first.
    """

    last_metadata: Any


@dataclass(frozen=True, slots=True)
class Done:
    """The run has ended well."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Everything below the failure is committed: end with this error."""

    error: TransactionError


Decision = (
    Cut
    | StoreMetadata
    | StartWave
    | StartCommit
    | Publish
    | Tell
    | CancelWave
    | ReleaseWave
    | RanEarly
    | AskWatch
    | Issued
    | Dropped
    | Replayed
    | AskForEnd
    | Done
    | Halt
)
