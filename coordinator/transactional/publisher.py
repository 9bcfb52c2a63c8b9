"""Publishes groups to a run's store: turns replies into events, waits for barriers, and watches the server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from coordinator.transactional.machine.poison import Poison
from coordinator.transactional.machine.run_events import (
    AskBarrier,
    BarrierConfirmed,
    Publish,
    Published,
    Quarantine,
    Refused,
)
from coordinator.watching.log_records import fields
from state.commits.commit import (
    COMMIT_OPERATIONS_LIMIT,
    HISTORY_KEPT,
    Commit,
    CommitReply,
    CommitStatus,
    RefusalCause,
)
from state.commits.quarantine import QuarantineChange, QuarantineRecord, RepublishedQuarantine, SetAside
from state.commits.write_set import WriteSet
from state.errors import (
    FencedError,
    ProtocolError,
    QuarantineFullError,
    ReplayLimitError,
    StateRefusedError,
    TransactionError,
    TransactionTooLargeError,
)
from state.metadata import MetadataChanges
from state.printable import counted, one_line
from state.redis_owner.fitness import ServerWatch
from state.redis_owner.refusals import state_not_as_left, trouble_of
from state.redis_owner.store import RedisStore
from state.troubles import Trouble

_LOG = logging.getLogger("txbatch")


class Store(Protocol):
    """The part of `RedisStore` that a run uses once it owns the topology."""

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        """Stores metadata fields and deletes those to forget, fenced."""

    def commit(self, commit: Commit) -> CommitReply:
        """Publishes a group and returns the store's reply."""

    def confirm(self) -> None:
        """Checks that the store has lost no confirmed commit."""


@dataclass(frozen=True, slots=True)
class QuarantineOrigin:
    """The run that sets a batch aside, as its quarantine record describes it.

    Attributes:
        wall_clock: seconds since the epoch.
        topology_fingerprint: digest of the topology's description.
        source_fingerprint: fingerprint of the input.
        limit: most quarantined batches the topology may have.
    """

    wall_clock: Callable[[], float]
    topology_fingerprint: str
    source_fingerprint: str
    limit: int

    def set_aside(self, poison: Poison) -> SetAside:
        """Returns the quarantine record for a commit to store; called once per commit, which may be repeated."""
        record = QuarantineRecord(
            txid=poison.txid,
            batch=poison.batch,
            cause=poison.cause,
            set_aside_at_s=self.wall_clock(),
            topology_fingerprint=self.topology_fingerprint,
            source_fingerprint=self.source_fingerprint,
        )
        return SetAside(record, self.limit)


class Publisher:
    """Publishes for one run, on its thread.

    Args:
        store: the store that this run has acquired.
        topology_id: for messages.
        clock: seconds, monotonic.
        history: how many transactions keep their receipt and metadata.
        origin: this run, as quarantine records describe it; None if the run quarantines nothing.
        server_watch: checks the server during the run.
        barriers: confirms how durable commits are; None if the run waits for nothing.
    """

    def __init__(
        self,
        store: Store,
        topology_id: str,
        *,
        clock: Callable[[], float],
        history: int = HISTORY_KEPT,
        origin: QuarantineOrigin | None = None,
        server_watch: ServerWatch | None = None,
        barriers: RedisStore | None = None,
    ) -> None:
        self._store, self._topology_id, self._clock, self._history = store, topology_id, clock, history
        self._origin = origin
        self._server_watch, self._barriers = server_watch, barriers
        self._barrier: AskBarrier | None = None

    # Writing

    def store_metadata(self, entries: Mapping[str, Any]) -> None:
        """Stores metadata; called before anything that depends on it is emitted or committed."""
        self._store.store_metadata(entries)

    def publish(self, publish: Publish) -> Published | Refused:
        """Commits a group in one atomic step; returns once this call or an earlier identical one has published it.

        Raises:
            FencedError: a newer run owns the topology, or it was dropped.
            StateRefusedError: the state is not as this run left it.
            StateUnreachableError: the store did not answer.
        """
        republished = publish.republished
        taken = None if republished is None or republished.letters else RepublishedQuarantine(republished.txid)
        answer = self._commit(publish, publish.write_set, taken)
        if republished is not None and isinstance(answer, Published):
            count, attempt = len(republished.letters), publish.attempts[0]
            what = counted(count, "dead letter") if count else f"quarantined txid {republished.txid}"
            _LOG.info("%s republished as txid %d", what, attempt.txid, extra=fields(attempt))
        return answer

    def quarantine(self, quarantine: Quarantine) -> Published | Refused:
        """Commits an empty transaction with the quarantine record of its batch; raises as `publish`."""
        assert self._origin is not None, "the run quarantines nothing"
        poison = quarantine.poison
        answer = self._commit(quarantine, WriteSet(), self._origin.set_aside(poison))
        if isinstance(answer, Published):
            cause = poison.cause
            about = fields(quarantine.attempts[0], component=cause.component_id or None, reason=cause.reason)
            _LOG.warning("txid %d is quarantined: %s", poison.txid, cause.reason, extra=about)
        return answer

    def _commit(
        self, sent: Publish | Quarantine, write_set: WriteSet, quarantine: QuarantineChange | None
    ) -> Published | Refused:
        commit = Commit(
            sent.attempts,
            write_set,
            sent.metadata.puts,
            sent.metadata.forgets,
            notified_txid=sent.notified_txid,
            quarantine=quarantine,
            history=self._history,
        )
        reply = self._store.commit(commit)
        if reply.status not in (CommitStatus.OK, CommitStatus.ALREADY):
            return Refused(self._refusal(commit, reply))
        return Published(self._clock(), reply.byte_count, reply.busy_s, reply.expired_count)

    def _refusal(self, commit: Commit, reply: CommitReply) -> TransactionError:
        """Returns the error for a refusal caused by the group's content; the refusal changed nothing.

        Raises:
            TransactionError: the content is not the cause, so the run cannot continue.
        """
        attempts, detail = commit.attempts, one_line(reply.detail)
        names = str(attempts[0]) if len(attempts) == 1 else f"{attempts[0]} to {attempts[-1]}"
        operation_count = commit.write_set.operations()
        match reply.status:
            case CommitStatus.FENCED | CommitStatus.DROPPED:
                raise FencedError(self._topology_id, reply.status is CommitStatus.DROPPED)
            case CommitStatus.LIMIT if operation_count > COMMIT_OPERATIONS_LIMIT:
                return TransactionTooLargeError(attempts[0].txid, operation_count, COMMIT_OPERATIONS_LIMIT)
            case CommitStatus.TYPE | CommitStatus.LIMIT:
                is_full = reply.cause is RefusalCause.LETTERS_FULL
                trouble = Trouble.DEAD_LETTER_LIMIT if is_full else Trouble.STATE_VALUE
                return StateRefusedError(f"transaction {names} was refused: {detail}").about(trouble)
            case CommitStatus.FULL if isinstance(commit.quarantine, SetAside):
                record = commit.quarantine.record
                return QuarantineFullError(self._topology_id, record.txid, int(reply.detail), record.cause.reason)
            case CommitStatus.GONE:
                return StateRefusedError(
                    f"quarantined txid {reply.detail} of topology {self._topology_id!r} was dropped while it was "
                    "republished; nothing of it was published"
                )
            case CommitStatus.ORDER:
                raise ProtocolError(f"transactions {names} were sent out of order: {detail}")
        raise StateRefusedError(
            f"topology {self._topology_id!r}: commit of {names} was answered {reply.status}: {detail}; "
            f"{state_not_as_left(reply)}"
        ).about(trouble_of(reply.status))

    # Barriers

    def ask_barrier(self, barrier: AskBarrier) -> None:
        """Makes the write whose durability the barrier waits for."""
        if self._barriers is None:
            raise ProtocolError("a barrier was asked for in a run that waits for nothing")
        self._barriers.ask_barrier(barrier.confirmed_txid)
        self._barrier = barrier

    @property
    def awaits_barrier(self) -> bool:
        """Whether a barrier is outstanding."""
        return self._barrier is not None

    @property
    def barrier_timeout_s(self) -> float | None:
        """How long the run may do nothing but wait for a barrier; None if it uses no barriers."""
        return None if self._barriers is None else self._barriers.unreachable_timeout_s

    def barrier_answer(self, timeout_s: float = 0.0) -> BarrierConfirmed | None:
        """Returns the answer to the outstanding barrier; None if there is none within `timeout_s`."""
        barrier = self._barrier
        if barrier is None or self._barriers is None or not self._barriers.barrier_answer(timeout_s):
            return None
        self._barrier = None
        return BarrierConfirmed(barrier.up_to_txid, self._clock())

    # The server

    @property
    def absences(self) -> tuple[int, float]:
        """How often the server was unreachable, and for how many seconds in total."""
        return (0, 0.0) if self._server_watch is None else (self._server_watch.away_count, self._server_watch.away_s)

    def look(self) -> None:
        """Checks the server if that is due.

        Raises:
            StateRefusedError: the server can no longer be used.
        """
        if self._server_watch is not None:
            self._server_watch.look()

    def confirm(self) -> None:
        """Checks that the store still holds everything this run has published.

        Raises:
            FencedError, StateRefusedError, StateUnreachableError: it does not, or cannot be asked.
        """
        self._store.confirm()

    def finish(self, released_txid: int, notes: MetadataChanges) -> None:
        """Stores notes that no commit has stored, checks the store, and records durability; called at the end of a run.

        Args:
            released_txid: the last released transaction.
            notes: notes of input changes that the user has accepted, if nothing was committed since.
        """
        if notes:
            self._store.store_metadata(notes.puts, notes.forgets)
        self.confirm()
        if self._barriers is not None and released_txid:
            self._barriers.note_durable(released_txid)

    def halt(self, error: TransactionError) -> None:
        """Ends the run with an error; if the run has lost the topology, with that error instead.

        A committer that reads state is the first to notice a drop or a newer run, but can only report a failure.

        Raises:
            TransactionError: always.
        """
        if isinstance(error, (StateRefusedError, ReplayLimitError)):
            try:
                self.confirm()
            except TransactionError as lost:
                raise lost from error
        raise error
