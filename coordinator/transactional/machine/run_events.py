"""The events that go into the run machine and the decisions that it returns. Plain data.

The driver carries out decisions in order. Five of them have an answer, an event that goes into the machine once the
decisions before it are carried out: Cut, Publish, Quarantine, NotifySpout and AskForEnd. AskBarrier is answered later.
Three are only for the run's observers: AttemptsIssued, AttemptsFailed and AttemptRetried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from committers.task_report import TaskReport
from coordinator.spouts.batch import Batch
from coordinator.transactional.engine import EarlyCommit, PhaseEvent
from coordinator.transactional.machine.poison import Poison
from coordinator.transactional.machine.republication import Republication
from coordinator.watching.run_observer import AttemptRetried, AttemptsFailed, AttemptsIssued
from state.attempt import Attempts
from state.commits.write_set import WriteSet
from state.errors import TransactionError
from state.metadata import MetadataChanges

# Events


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run begins where earlier ones have stopped; handled before anything else.

    Attributes:
        unnotified: what they committed without a certain notification of the spout's committer, ascending.
    """

    unnotified: Attempts = ()


@dataclass(frozen=True, slots=True)
class FirstPositions:
    """The spout has said where partitions begin that were never read; handled before anything is cut.

    Attributes:
        positions: scope -> position.
    """

    positions: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The driver is ready: commit, cut and start what is due.

    Attributes:
        now_s: the time.
        commit_limit: most transactions of a group that begins now; 0 begins none, None is what the options say.
        is_awaited: the caller has nothing more to give until what is committed is released.
    """

    now_s: float
    commit_limit: int | None = None
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed: give up what takes too long."""

    now_s: float


@dataclass(frozen=True, slots=True)
class BatchCut:
    """The spout has cut a transaction.

    Attributes:
        txid: of the transaction.
        metadata: what the spout's coordinator returned.
        now_s: the time afterwards: cutting may take a while.
        byte_count: about how much input the batch reads; 0 if unknown.
        notes: name -> what its commit is to store as a note.
        republished: the quarantined batch that it is; None if the spout has cut it.
    """

    txid: int
    metadata: Any
    now_s: float
    byte_count: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    republished: Republication | None = None


@dataclass(frozen=True, slots=True)
class NothingToCut:
    """The spout has nothing for a txid now."""

    txid: int
    now_s: float


@dataclass(frozen=True, slots=True)
class Published:
    """The store has committed the group.

    Attributes:
        now_s: the time.
        byte_count: size of what was sent to the store.
        call_s: how long the call kept the server busy; 0 if that is not known.
        expired_count: how many parts and fields of states had expired when they were written.
    """

    now_s: float
    byte_count: int = 0
    call_s: float = 0.0
    expired_count: int = 0


@dataclass(frozen=True, slots=True)
class BarrierConfirmed:
    """The server has confirmed the level that the run asked for.

    Attributes:
        up_to_txid: of the barrier; everything up to it is confirmed.
        now_s: the time.
    """

    up_to_txid: int
    now_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """The store refused the group because of its content and changed nothing.

    Attributes:
        error: ends the run if the group was a single transaction.
    """

    error: TransactionError


@dataclass(frozen=True, slots=True)
class SpoutNotified:
    """The spout's committer was notified of what is durable.

    Attributes:
        error: what it raised; None if it succeeded.
    """

    error: TransactionError | None = None


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of the input while nothing is in flight.

    Attributes:
        is_exhausted: the input has ended.
        is_draining: the run cuts nothing more.
        is_finite: the input ends by itself; known only while the run drains.
        error: what the spout has raised.
    """

    is_exhausted: bool = False
    is_draining: bool = False
    is_finite: bool = False
    error: TransactionError | None = None


RunEvent = (
    Resumed
    | FirstPositions
    | Turn
    | TimePassed
    | BatchCut
    | NothingToCut
    | Published
    | BarrierConfirmed
    | Refused
    | SpoutNotified
    | InputState
    | PhaseEvent
)

# Decisions


@dataclass(frozen=True, slots=True)
class Cut:
    """Let the spout cut a transaction; answered by BatchCut or NothingToCut.

    Attributes:
        txid: of the transaction.
        previous: metadata of the transaction before it, None if there is none.
        is_new: it was never cut before, so the spout is first asked whether it is ready.
    """

    txid: int
    previous: Any
    is_new: bool


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Store these metadata fields before carrying out what follows."""

    entries: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartWave:
    """Start the processing phase of a wave.

    Attributes:
        wave_id: of the wave.
        batches: one for each attempt, ascending.
        early: groups to run early.
        stored: scope -> txid -> metadata of partitions, from which emitters continue.
    """

    wave_id: int
    batches: tuple[Batch, ...]
    early: EarlyCommit
    stored: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StartCommit:
    """Start the commit phase of a group.

    Attributes:
        wave_id: of its wave.
        attempts: the group, ascending.
        composed: whether each task composes one write set; else it makes one for each transaction.
    """

    wave_id: int
    attempts: Attempts
    composed: bool


@dataclass(frozen=True, slots=True)
class Publish:
    """Commit a group in one atomic step; answered by Published or Refused.

    Attributes:
        attempts: the group, ascending.
        write_set: its changes.
        metadata: what to store and forget in the same step.
        notified_txid: the last txid that the spout's committer has heard of; None if of all that is committed.
        republished: the quarantined batch that the group's only transaction publishes.
        reports: of the commit tasks; their results begin with those on these attempts.
    """

    attempts: Attempts
    write_set: WriteSet
    metadata: MetadataChanges
    notified_txid: int | None = None
    republished: Republication | None = None
    reports: tuple[TaskReport, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Commit the transaction of a batch that is given up, empty, with the record of the batch; answered as `Publish`.

    Attributes:
        attempts: the one of that transaction.
        poison: the batch.
        metadata: see `Publish`.
        notified_txid: see `Publish`.
    """

    attempts: Attempts
    poison: Poison
    metadata: MetadataChanges
    notified_txid: int | None = None


@dataclass(frozen=True, slots=True)
class AskBarrier:
    """Ask the server whether all that is committed is as durable as the run has asked; BarrierConfirmed says so later.

    Attributes:
        up_to_txid: the last committed txid.
        confirmed_txid: up to where that is known, 0 if nothing is; stored on this occasion.
    """

    up_to_txid: int
    confirmed_txid: int


@dataclass(frozen=True, slots=True)
class NotifySpout:
    """Notify the spout's committer of what is as durable as the run has asked; answered by SpoutNotified."""

    attempts: Attempts


@dataclass(frozen=True, slots=True)
class CancelWave:
    """Cancel what runs for a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class ReleaseWave:
    """Free everything that is kept for a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class AskForEnd:
    """Nothing is in flight: ask for the state of the input; answered by InputState."""


@dataclass(frozen=True, slots=True)
class Done:
    """End the run: it is complete, or drained.

    Attributes:
        is_interrupted: it was drained before a finite input had ended.
    """

    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """End the run with this error: everything below the failure is committed."""

    error: TransactionError


Decision = (
    Cut
    | StoreMetadata
    | StartWave
    | StartCommit
    | Publish
    | Quarantine
    | AskBarrier
    | NotifySpout
    | CancelWave
    | ReleaseWave
    | AttemptsIssued
    | AttemptsFailed
    | AttemptRetried
    | AskForEnd
    | Done
    | Halt
)
