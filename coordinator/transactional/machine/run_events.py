"""The events that go into the run machine and the decisions that it returns. Plain data.

The driver carries out decisions in order. Five are answered by an event, which enters the machine once the decisions
before it are carried out: Cut, Publish, Quarantine, NotifySpout and AskForEnd. AskBarrier is answered later. Three are
only for the run's observers: AttemptsIssued, AttemptsFailed and AttemptRetried.
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
    """The run begins where earlier ones stopped; handled before anything else.

    Attributes:
        unnotified: transactions they committed that the spout's committer may not have heard about, ascending.
    """

    unnotified: Attempts = ()


@dataclass(frozen=True, slots=True)
class FirstPositions:
    """The spout has returned the first positions of partitions that were never read; handled before anything is cut.

    Attributes:
        positions: scope -> position.
    """

    positions: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The driver is ready: commit, cut and start what is due.

    Attributes:
        now_s: the time.
        commit_limit: most transactions of a group that begins now; 0 begins no group, None takes the options' limit.
        is_awaited: the caller has no more input until the committed transactions are released.
    """

    now_s: float
    commit_limit: int | None = None
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed: give up phases that take too long."""

    now_s: float


@dataclass(frozen=True, slots=True)
class BatchCut:
    """The spout has cut a transaction.

    Attributes:
        txid: the transaction's txid.
        metadata: the metadata that the spout's coordinator returned.
        now_s: the time afterwards: cutting may take a while.
        byte_count: about how much input the batch reads; 0 if unknown.
        notes: name -> note for its commit to store.
        republished: the quarantined batch that the transaction publishes; None if the spout has cut it.
    """

    txid: int
    metadata: Any
    now_s: float
    byte_count: int = 0
    notes: Mapping[str, Any] = field(default_factory=dict)
    republished: Republication | None = None


@dataclass(frozen=True, slots=True)
class NothingToCut:
    """The spout has no batch for a txid now."""

    txid: int
    now_s: float


@dataclass(frozen=True, slots=True)
class Published:
    """The store has committed the group.

    Attributes:
        now_s: the time.
        byte_count: size of what was sent to the store.
        call_s: how long the call kept the server busy; 0 if unknown.
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
        up_to_txid: the barrier's txid; everything up to it is confirmed.
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
    """The spout's committer was notified of durable transactions.

    Attributes:
        error: the error that the committer raised; None if it succeeded.
    """

    error: TransactionError | None = None


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of the input while nothing is in flight.

    Attributes:
        is_exhausted: the input has ended.
        is_draining: the run cuts no new transactions.
        is_finite: the input ends by itself; known only while the run drains.
        error: the error that the spout has raised.
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
        txid: the transaction's txid.
        previous: metadata of the transaction before; None if there is none.
        is_new: the transaction was never cut before, so the spout is first asked whether it is ready.
    """

    txid: int
    previous: Any
    is_new: bool


@dataclass(frozen=True, slots=True)
class StoreMetadata:
    """Store these metadata fields before carrying out later decisions."""

    entries: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StartWave:
    """Start the processing phase of a wave.

    Attributes:
        wave_id: the wave.
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
        wave_id: the group's wave.
        attempts: the group, ascending.
        composed: whether each task composes one write set, instead of one per transaction.
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
        metadata: the metadata to store and forget in the same step.
        notified_txid: the last txid that the spout's committer was notified of; None if of all committed ones.
        republished: the quarantined batch that the group's only transaction publishes.
        reports: the commit tasks' reports, whose first results are for these attempts.
    """

    attempts: Attempts
    write_set: WriteSet
    metadata: MetadataChanges
    notified_txid: int | None = None
    republished: Republication | None = None
    reports: tuple[TaskReport, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Commit an empty transaction with the record of a batch that is given up; answered as `Publish`.

    Attributes:
        attempts: the transaction's only attempt.
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
    """Ask the server whether all commits are as durable as the run has asked; answered later by BarrierConfirmed.

    Attributes:
        up_to_txid: the last committed txid.
        confirmed_txid: the last txid known to be that durable, 0 if none is; stored on this occasion.
    """

    up_to_txid: int
    confirmed_txid: int


@dataclass(frozen=True, slots=True)
class NotifySpout:
    """Notify the spout's committer of transactions that are as durable as asked; answered by SpoutNotified."""

    attempts: Attempts


@dataclass(frozen=True, slots=True)
class CancelWave:
    """Cancel the running work of a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class ReleaseWave:
    """Free everything kept for a wave."""

    wave_id: int


@dataclass(frozen=True, slots=True)
class AskForEnd:
    """Nothing is in flight: ask for the state of the input; answered by InputState."""


@dataclass(frozen=True, slots=True)
class Done:
    """End the run: it is complete, or drained.

    Attributes:
        is_interrupted: the run was drained before a finite input had ended.
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
