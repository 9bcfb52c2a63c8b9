"""Publishes groups to the store and turns its refusals into errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from state.attempt import TransactionAttempt
from state.commits.commit import COMMIT_OPERATIONS_LIMIT, HISTORY_KEPT, Commit, CommitReply, CommitStatus, SetAside
from state.commits.write_set import WriteSet
from state.errors import (
    FencedError,
    ProtocolError,
    QuarantineFullError,
    StateRefusedError,
    TransactionError,
    TransactionTooLargeError,
)
from state.metadata.transactional_state import MetadataChanges
from state.printable import one_line
from state.redis_topology.refusals import state_not_as_left, trouble_of
from state.troubles import Trouble


class Store(Protocol):
    """The part of `RedisStore` that a run uses once it owns the topology."""

    def store_metadata(self, entries: Mapping[str, Any]) -> None:
        """Stores metadata, fenced."""

    def commit(self, commit: Commit) -> CommitReply:
        """Publishes a group and returns the store's reply."""

    def confirm(self) -> None:
        """Checks that the store has lost nothing that it confirmed."""


class RefusedGroup(Exception):  # noqa: N818 - not an error of the run yet
    """The store refused a group because of its content and changed nothing.

    Attributes:
        error: ends the run if the group was a single transaction.
    """

    def __init__(self, error: TransactionError) -> None:
        super().__init__(error)
        self.error = error


class Publisher:
    """Publishes for one run.

    Args:
        store: acquired by this run.
        topology_id: for messages.
        history: how many transactions keep their receipt and metadata.
    """

    def __init__(self, store: Store, topology_id: str, *, history: int = HISTORY_KEPT) -> None:
        self._store = store
        self._topology_id, self._history = topology_id, history

    def store_metadata(self, entries: Mapping[str, Any]) -> None:
        """Stores metadata; called before anything that depends on it is emitted or committed."""
        self._store.store_metadata(entries)

    def confirm(self) -> None:
        """Checks that the store still holds everything this run has published.

        Raises:
            FencedError, StateRefusedError, StateUnreachableError: see `commit`.
        """
        self._store.confirm()

    def commit(
        self,
        attempts: tuple[TransactionAttempt, ...],
        write_set: WriteSet,
        metadata: MetadataChanges,
        *,
        told_txid: int | None = None,
        set_aside: SetAside | None = None,
        replayed_txid: int | None = None,
    ) -> int:
        """Publishes a group; returns once this call or an earlier identical one has published it.

        Args:
            attempts: the group, ascending.
            write_set: its changes.
            metadata: what to store and forget in the same step.
            told_txid: the last txid that the spout's committer has heard of; None if of all that is committed.
            set_aside: see `Commit`.
            replayed_txid: see `Commit`.

        Returns:
            The size of what was sent, in bytes.

        Raises:
            RefusedGroup: the store refused the content of the group and changed nothing.
            FencedError: a newer run owns the topology, or it was dropped.
            StateRefusedError: the state is not as this run left it.
            StateUnreachableError: the store did not answer.
        """
        puts, forgets = metadata.puts, metadata.forgets
        commit = Commit(attempts, write_set, puts, forgets, told_txid, set_aside, replayed_txid, self._history)
        reply = self._store.commit(commit)
        if reply.status in (CommitStatus.OK, CommitStatus.ALREADY):
            return reply.byte_count
        detail = one_line(reply.detail)
        names = str(attempts[0]) if len(attempts) == 1 else f"{attempts[0]} to {attempts[-1]}"
        if reply.status in (CommitStatus.FENCED, CommitStatus.DROPPED):
            raise FencedError(self._topology_id, reply.status is CommitStatus.DROPPED)
        if reply.status is CommitStatus.TYPE:
            raise RefusedGroup(
                StateRefusedError(f"transaction {names} was refused: {detail}").about(Trouble.STATE_VALUE)
            )
        if reply.status is CommitStatus.LIMIT:
            operation_count = write_set.operations()
            if operation_count > COMMIT_OPERATIONS_LIMIT:
                error: TransactionError = TransactionTooLargeError(
                    attempts[0].txid, operation_count, COMMIT_OPERATIONS_LIMIT
                )
            else:
                error = StateRefusedError(f"transaction {names} was refused: {detail}").about(Trouble.STATE_VALUE)
            raise RefusedGroup(error)
        if reply.status is CommitStatus.FULL and set_aside is not None:
            txid, reason = set_aside.record.txid, set_aside.record.cause.reason
            raise RefusedGroup(QuarantineFullError(self._topology_id, txid, int(reply.detail), reason))
        if reply.status is CommitStatus.GONE:
            raise RefusedGroup(
                StateRefusedError(
                    f"quarantined txid {reply.detail} of topology {self._topology_id!r} was dropped while it was "
                    "replayed; nothing of it was published"
                )
            )
        if reply.status is CommitStatus.ORDER:
            raise ProtocolError(f"transactions {names} were sent out of order: {detail}")
        raise StateRefusedError(
            f"topology {self._topology_id!r}: commit of {names} was answered {reply.status}: {detail}; "
            f"{state_not_as_left(reply)}"
        ).about(trouble_of(reply.status))
