"""The only request that changes live state, and all possible answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from state.attempt import TransactionAttempt
from state.commits.quarantine import QuarantineChange
from state.commits.write_set import WriteSet

COMMIT_OPERATIONS_LIMIT = 500_000
"""Most operations in one commit: a larger one would block the server for more than a second."""

GROUP_BYTES_AIM = 16 * 1024 * 1024
"""Groups of more than one transaction aim to stay below this size, which blocks the server for about 0.1 s, as long as
a full group of small operations.
"""


HISTORY_KEPT = 10_000
"""How many transactions keep their receipt and metadata, unless a run asks for another number."""


class CommitStatus(StrEnum):
    """The server's answer to a commit."""

    OK = "OK"
    ALREADY = "ALREADY"
    """The identical commit was applied before; nothing changed."""
    CONFLICT = "CONFLICT"
    """Someone else wrote under this owner's fence: stop."""
    FENCED = "FENCED"
    """A newer coordinator owns the topology."""
    DROPPED = "DROPPED"
    """The topology was dropped after it was acquired, and perhaps started again."""
    ORDER = "ORDER"
    """The group does not start right after the last committed txid: a bug in the sender."""
    TYPE = "TYPE"
    """A key has another Redis type, or a field is not a number of the declared type."""
    REGRESSED = "REGRESSED"
    """The server holds an older state than this coordinator has seen, or none."""
    TORN = "TORN"
    """The server has applied part of a write that it had lost: its state is damaged."""
    VERSION = "VERSION"
    """The stored format has another version."""
    LIMIT = "LIMIT"
    """Too many operations, or a number out of range."""
    FULL = "FULL"
    """The topology has reached its limit of quarantined batches."""
    PAUSED = "PAUSED"
    """A shard has staged nothing: a reader of all shards asks the run to wait."""
    GONE = "GONE"
    """The quarantined batch that the commit publishes was dropped or published before."""


class RefusalCause(StrEnum):
    """The cause of a refusal, if its status alone does not imply the remedy."""

    NONE = ""
    OPERATIONS = "OPERATIONS"
    """LIMIT: a commit has too many operations."""
    LETTERS_FULL = "LETTERS_FULL"
    """LIMIT: there is no room for more dead letters."""
    LETTER_GONE = "LETTER_GONE"
    """TYPE: a dead letter that the commit publishes was dropped."""
    KEY_GONE = "KEY_GONE"
    """REGRESSED: the topology's control record is missing."""
    FIELD_DAMAGED = "FIELD_DAMAGED"
    """REGRESSED: a field of that record is lost or holds something else."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A group of consecutive transactions to publish in one atomic step.

    Attributes:
        attempts: the attempts, in order of consecutive txids; the first follows the committed txid.
        write_set: their composed changes.
        metadata: metadata fields to store in the same step (positions of opaque spouts).
        forget: metadata fields to delete in the same step.
        notified_txid: the last txid that the spout's committer was notified of; None if of everything before.
        quarantine: the quarantined batch that the commit adds or removes.
        history: how many transactions keep their receipt and metadata.
    """

    attempts: tuple[TransactionAttempt, ...]
    write_set: WriteSet
    metadata: Mapping[str, Any] = field(default_factory=dict)
    forget: tuple[str, ...] = ()
    notified_txid: int | None = None
    quarantine: QuarantineChange | None = None
    history: int = HISTORY_KEPT


@dataclass(frozen=True, slots=True)
class CommitReply:
    """The answer to a commit: a status, and details; for TYPE and LIMIT the details name state key and field.

    `byte_count` is the size of the sent arguments, 0 if nothing was sent. `busy_s` is how long the call kept the server
    busy, 0 if it had to be repeated. `cause` refines a refusal, see `RefusalCause`. `expired_count` is how many parts
    and fields had expired, by the server's clock, when they were written, and are gone; 0 if the call was repeated.
    """

    status: CommitStatus
    detail: str = ""
    byte_count: int = 0
    busy_s: float = 0.0
    expired_count: int = 0
    cause: RefusalCause = RefusalCause.NONE
