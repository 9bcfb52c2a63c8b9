"""Committed state in a dictionary: a `StateReader`, and a commit that checks before it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from state.attempt import TransactionAttempt
from state.codec import pack_exact, unpack
from state.commits.commit import Commit, CommitReply, CommitStatus
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.commits.packed_writes import unpacked
from state.commits.quarantine import QuarantineRecord, SetAside
from state.commits.state_writes import StateWrites
from state.commits.write_set import WriteSet
from state.errors import StaleReadError
from state.values.state_kind import VALUE_FIELD, Field, KeptEnd, Retention, StateKind


class MemoryStore:
    """What Redis would hold: state name -> field -> value (set: True; list: one list under `VALUE_FIELD`;
    stream: id -> fields).

    Attributes:
        states: the state.
        metadata: stored metadata by field.
        attempts: the group that was committed last.
        committed: every commit that was applied: the txids of its group.
        calls: what was asked of it, in order.
        quarantined: txid -> record of a batch that was set aside.
        replies: answers to give instead of applying a commit, first come first served.
    """

    def __init__(self) -> None:
        self.states: dict[str, dict[Any, Any]] = {}
        self.metadata: dict[str, Any] = {}
        self.attempts: tuple[TransactionAttempt, ...] = ()
        self.committed: list[list[int]] = []
        self.calls: list[tuple[Any, ...]] = []
        self.quarantined: dict[int, QuarantineRecord] = {}
        self.replies: list[CommitReply | Exception | None] = []

    @property
    def committed_txid(self) -> int:
        return self.committed[-1][-1] if self.committed else 0

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> list[bytes | None]:
        if as_of_txid != self.committed_txid:
            raise StaleReadError(name, as_of_txid, self.committed_txid)
        held = self.states.get(name, {})
        return [None if field not in held else _stored(held[field]) for field in fields]

    def last_group(self) -> tuple[TransactionAttempt, ...]:
        return self.attempts

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        self.calls.append(("metadata", dict(entries)))
        self.metadata.update(entries)
        for field in forget:
            self.metadata.pop(field, None)

    def confirm(self) -> None:
        """Nothing is ever lost here."""

    def commit(self, commit: Commit) -> CommitReply:
        self.calls.append(("commit", [attempt.txid for attempt in commit.attempts], commit.forget))
        answer = self.replies.pop(0) if self.replies else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None and answer.status is not CommitStatus.ALREADY:
            return answer
        if isinstance(commit.quarantine, SetAside):
            if len(self.quarantined) >= commit.quarantine.limit:
                return CommitReply(CommitStatus.FULL, str(len(self.quarantined)))
            self.quarantined[commit.quarantine.record.txid] = commit.quarantine.record
        elif commit.quarantine is not None and self.quarantined.pop(commit.quarantine.txid, None) is None:
            return CommitReply(CommitStatus.GONE, str(commit.quarantine.txid))
        self.publish(commit.attempts, commit.write_set)
        self.metadata.update({field: unpack(pack_exact(value)) for field, value in commit.metadata.items()})
        self.attempts = commit.attempts
        for field in commit.forget:
            del self.metadata[field]
        return answer or CommitReply(CommitStatus.OK)

    def publish(self, attempts: Sequence[TransactionAttempt], write_set: WriteSet) -> None:
        txids = [attempt.txid for attempt in attempts]
        assert txids == list(range(self.committed_txid + 1, self.committed_txid + 1 + len(txids)))
        if write_set.letters is not None:
            letters = self.states.setdefault(DEAD_LETTERS_STATE, {})
            for member in write_set.letters.taken:
                del letters[member]
            letters.update(write_set.letters.added)
            if not letters:
                del self.states[DEAD_LETTERS_STATE]
        for name, form in write_set.states.items():
            writes, held = unpacked(form), self.states.setdefault(name, {})
            for field in writes.deletes:
                held.pop(field, None)
            for field, value in writes.puts.items():
                is_ranked = writes.retention.is_ranked and field in held
                if not is_ranked or writes.retention.is_better(value, held[field]):
                    held[field] = value
            for field, deltas in writes.increments.items():
                for delta in deltas if isinstance(deltas, list) else [deltas]:
                    held[field] = held.get(field, 0) + delta
            _cut(held, writes.retention)
            if writes.appends:
                _append(held, writes)
            if not held:
                del self.states[name]
        self.committed.append(txids)


def _append(held: dict[Any, Any], writes: StateWrites) -> None:
    is_bounded, most = writes.retention.side is KeptEnd.LAST, writes.retention.most
    if writes.kind is StateKind.LIST:
        items = held.get(VALUE_FIELD, []) + writes.appends
        held[VALUE_FIELD] = items[-most:] if is_bounded else items
        return
    for txid, number, *fields in sorted(writes.appends, key=itemgetter(0, 1)):
        held[f"{txid}-{number}"] = dict(zip(fields[::2], fields[1::2], strict=True))
    for entry_id in list(held)[:-most] if is_bounded else ():
        del held[entry_id]


def _cut(held: dict[Any, Any], retention: Retention) -> None:
    """Leaves the best members of a ranked state; the server's order is by score, then by the bytes of the member."""
    if retention.is_ranked:
        order = sorted(held, key=lambda member: (held[member], _stored(member)))
        kept = order[-retention.most :] if retention.side is KeptEnd.HIGHEST else order[: retention.most]
        for member in set(held) - set(kept):
            del held[member]


def _stored(value: Any) -> bytes:
    if value is True:
        return b"1"
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else repr(value).encode()
