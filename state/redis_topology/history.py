"""Reads everything a server knows about one transaction, with plain commands: needs no ownership and no library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state.errors import StateRefusedError
from state.keys import Keys, parse_metadata_field
from state.metadata import unpack_metadata
from state.records.transaction_history import Receipt, parse_receipt, parse_record
from state.records.transaction_story import TransactionStory, story_of
from state.redis_client.connection import RedisConnection, pairs_of, text_of


@dataclass(frozen=True, slots=True)
class KnownTransaction:
    """What a server knows of a transaction.

    Attributes:
        txid: its number.
        committed_txid: the last committed one.
        history_from: the lowest txid that may have a record; None if no commit has made one yet.
        receipt: what was published for it, None if that is not known any more, or it is not committed.
        metadata: scope -> metadata: what it was cut from, or will be. That of a replay is carried over from the
            transaction below, for the next one to be cut from: the replay itself contained none of it.
        left_out: scope -> size in bytes of metadata that was too long to keep.
        story: what its run has told of it, None if nothing.
        is_quarantined: its batch is in the quarantine.
        source_fingerprint: of the input of the last run.
        has_replay_mark: it is stored that it was a replay of what had been set aside; old marks are forgotten.
    """

    txid: int
    committed_txid: int
    history_from: int | None = None
    receipt: Receipt | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    story: TransactionStory | None = None
    is_quarantined: bool = False
    source_fingerprint: str = ""
    has_replay_mark: bool = False

    @property
    def is_replay(self) -> bool:
        """Whether it published what had been set aside, and nothing of the input."""
        story = self.story
        return self.has_replay_mark or (story is not None and bool(story.replay_of or story.replayed_letters))

    @property
    def is_committed(self) -> bool:
        """Whether it is committed."""
        return 0 < self.txid <= self.committed_txid

    @property
    def is_forgotten(self) -> bool:
        """Whether it is committed and nothing is known of it any more."""
        return self.is_committed and self.receipt is None


def known_transaction(connection: RedisConnection, keys: Keys, txid: int) -> KnownTransaction | None:
    """Returns what is known of a transaction, None if the topology is not stored.

    Metadata is read before the history, into which a commit may move it meanwhile, so it cannot be missed.

    Raises:
        StateRefusedError: a record cannot be read, or the server refuses a command.
        StateUnreachableError: no answer in time.
    """
    name = str(txid)
    metadata, has_replay_mark = _metadata_of(connection, keys, txid)
    record = connection.call("HGET", keys.history, name)
    receipt = connection.call("HGET", keys.receipts, name)
    story = connection.call("HGET", keys.stories, name)
    is_quarantined = bool(int(connection.call("HEXISTS", keys.quarantine, name)))
    committed, history_from, source = connection.call(
        "HMGET", keys.control, "committed", "history_from", "source_fingerprint"
    )
    if committed is None:
        return None
    kept = None if record is None else parse_record(keys, txid, bytes(record))
    return KnownTransaction(
        txid=txid,
        committed_txid=_number(keys, committed),
        history_from=None if history_from is None else _number(keys, history_from),
        receipt=parse_receipt(keys, "" if receipt is None else text_of(receipt)) if kept is None else kept.receipt,
        metadata=metadata if kept is None else {**kept.metadata, **metadata},
        has_replay_mark=has_replay_mark,
        left_out={} if kept is None else kept.left_out,
        story=None if story is None else story_of(text_of(story)),
        is_quarantined=is_quarantined,
        source_fingerprint="" if source is None else text_of(source),
    )


def _metadata_of(connection: RedisConnection, keys: Keys, txid: int) -> tuple[dict[str, Any], bool]:
    """Returns scope -> what is still stored as metadata of a transaction, and whether it is marked as a replay.

    The whole hash is as large as a window. Notes, and the numbers of replays, are the run's own, and no part of what a
    transaction contained.
    """
    found = connection.call("HGETALL", keys.metadata)
    stored = {text_of(name): bytes(value) for name, value in pairs_of(found)}
    own = {name: value for name, value in stored.items() if name.rpartition(":")[2] == str(txid)}
    by_scope = {parse_metadata_field(name)[0]: value for name, value in unpack_metadata(keys, own).items()}
    metadata = {scope: value for scope, value in by_scope.items() if not scope.startswith("note.")}
    return metadata, metadata.pop("replayed", None) is not None


def _number(keys: Keys, stored: Any) -> int:
    text = text_of(stored)
    if not text.isdecimal():
        raise StateRefusedError(f"key {keys.control!r} of topology {keys.topology_id!r} holds {text!r} for a txid")
    return int(text)
