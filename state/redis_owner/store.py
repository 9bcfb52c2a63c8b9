"""How the owner writes a topology's state: acquire, store metadata, commit, confirm.

The owner's writes are one sequence. Each carries the revision it expects, and the server applies it at that
revision or not at all. A server that has lost its last writes therefore refuses the next one before it changes
anything; see functions/keys.lua in `redis_client`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from state.attempt import TransactionAttempt
from state.codec import pack_exact
from state.commits.commit import Commit, CommitReply, CommitStatus
from state.errors import FencedError, ProtocolError, StateUnreachableError
from state.fault_points import reached
from state.metadata import MetadataSum, MetadataSumChange, checked_control, unpack_metadata, verified_metadata
from state.records.durability import durable_field
from state.records.topology_overview import FoundTopology
from state.records.transaction_history import parse_receipt
from state.redis_client.connection import RedisConnection, text_of
from state.redis_client.packed_call import Argument
from state.redis_client.presence import announce_run
from state.redis_owner.arguments import (
    CommitTooLargeError,
    Descriptions,
    Ownership,
    call_digest,
    commit_arguments,
    metadata_arguments,
    reply_of,
)
from state.redis_owner.letter_pages import RedisDeadLetters
from state.redis_owner.owned_sequence import OwnedSequence
from state.redis_owner.refusals import acquire_refusal, advised, refuse_shard
from state.redis_owner.slot import ConnectionOptions, RedisSlot

ACQUIRE_TRIES = 20


class RedisStore(RedisSlot):
    """The only writer of a topology's state; lives in the driver, safe to use from several threads.

    Constructed like a `RedisSlot`. Every call raises FencedError if a newer coordinator owns the topology,
    StateRefusedError if the server refuses or no longer holds the owner's last writes, and StateUnreachableError
    without an answer in time.
    """

    def __init__(self, url: str, topology_id: str, **options: Unpack[ConnectionOptions]) -> None:
        super().__init__(url, topology_id, **options)
        self._owned = OwnedSequence(topology_id, f"topology {topology_id!r}")
        self._metadata_sum = MetadataSum({})
        self._stored = self._to_store = Descriptions("", "")  # on the server, and after the next write
        self._sequence = threading.Lock()
        self._first_request = 0  # the next call of `acquire` counts from here: each request has a new number

    def acquire(
        self,
        *,
        nonce: str,
        new_generation: str,
        topology: str,
        source_fingerprint: str,
        accepted: FoundTopology | None = None,
        above: str = "",
    ) -> FoundTopology:
        """Becomes the owner of the topology; an older owner is fenced from then on.

        Called once, at start. It leaves the stored topology and input unchanged: the owner's first write stores a
        change of either in its own step.

        Args:
            nonce: 128 random bits in hexadecimal, new for every run; the tokens of its requests begin with it.
            new_generation: 128 random bits in hexadecimal, used at the topology's first start.
            topology: description of the topology.
            source_fingerprint: fingerprint of the input.
            accepted: the stored topology that the caller has seen and agrees to replace; if None, topology and input
                must equal the stored ones.
            above: a fence that a first start has to exceed.

        Raises:
            FencedError: other coordinators keep taking over at the same time.
        """
        refuse_shard(self._connection, self.keys)
        own = [self.keys.control, self.keys.metadata, self.keys.receipts, self.keys.quarantine]
        given = [new_generation, topology, source_fingerprint]
        given += ["", ""] if accepted is None else [accepted.topology, accepted.source_fingerprint]
        given.append(above)
        fields = ("fence", "committed", "revision")
        found = self._connection.call_or_none("HMGET", self.keys.control, *fields) or [None] * len(fields)
        control = {name: text_of(value) for name, value in zip(fields, found, strict=True) if value is not None}
        previous = checked_control(self.keys, control).get("fence", "")
        moves = self._connection.moves
        for number in range(self._first_request, self._first_request + ACQUIRE_TRIES):
            reached("acquire.sending")
            token = f"{nonce}-{number}"  # a request that lost a race may still be executed, elsewhere or later
            reply = self._connection.function("acquire", "4", *own, previous, token, *given)
            reached("acquire.answered")
            status = text_of(reply[0])
            if status == "OK":
                self._refuse_two_places(moves)
                acquired = self._acquired(reply, source_fingerprint, topology)
                announce_run(self._connection, self.keys)
                return acquired
            if status != "RACED":
                raise acquire_refusal(self.keys.topology_id, status, [text_of(item) for item in reply[1:]])
            previous = text_of(reply[1])
        raise FencedError(self.keys.topology_id)

    def describe(self, source_fingerprint: str, topology: str) -> None:
        """Replaces the descriptions that the next write stores, if `acquire` has found more than was accepted."""
        self._to_store = Descriptions(source_fingerprint, topology)

    def store_metadata(self, entries: Mapping[str, Any], forget: Sequence[str] = ()) -> None:
        """Stores all entries and deletes `forget` in one fenced step; called before attempts are emitted.

        A CodecError means that a value would not be read back unchanged; nothing was stored.
        """
        packed = {field: pack_exact(value) for field, value in entries.items()}
        keys = [self.keys.control, self.keys.metadata]
        change = self._metadata_sum.change(packed, forget)
        reached("metadata.sending")
        reply = self._write("metadata", keys, metadata_arguments(packed, forget), change)
        reached("metadata.answered")
        self._owned.require("cannot store metadata", reply)

    def commit(self, commit: Commit) -> CommitReply:
        """Publishes a group in one atomic step, repeating the identical call until it is answered.

        Every answer is returned as a status; OK and ALREADY both mean that the group is published exactly once.

        Raises:
            CodecError: a metadata value would not be read back unchanged; nothing was changed.
            StateRefusedError: the server cannot do it (out of memory, read-only, no rights).
            StateUnreachableError: no answer in time; the commit may or may not be applied, and a later `acquire` shows
                whether.
        """
        packed = {field: pack_exact(value) for field, value in commit.metadata.items()}
        try:
            keys, arguments = commit_arguments(self.keys, commit, packed)
        except CommitTooLargeError as error:
            return CommitReply(CommitStatus.LIMIT, str(error))
        return self._committed(keys, arguments, packed, commit.forget)

    def _committed(
        self,
        keys: Sequence[str],
        arguments: Sequence[Argument],
        packed: Mapping[str, bytes],
        forget: Sequence[str],
    ) -> CommitReply:
        """Sends a commit with these arguments and changes of metadata."""
        reached("commit.sending")
        reply = self._write("commit", keys, arguments, self._metadata_sum.change(packed, forget))
        if reply.status is CommitStatus.OK:
            reply = CommitReply(reply.status, expired_count=int(reply.detail))
        reached("commit.answered")
        advice = advised(self.keys.topology_id, reply)
        return replace(advice, byte_count=sum(map(len, arguments)), busy_s=self._connection.busy_s)

    def ask_barrier(self, confirmed_txid: int) -> None:
        """Asks whether everything written so far is as durable as asked in `check_server`; see `barrier_answer`.

        Called by the coordinator, one question at a time. `confirmed_txid`, the last txid known to be that durable, 0
        if none is, is stored on this occasion.
        """
        barrier = self._own_barrier()
        barrier.ask(lambda: self._write_barrier(barrier.wrapped, confirmed_txid))

    def barrier_answer(self, timeout_s: float = 0.0) -> bool:
        """Returns whether the server has confirmed the durability; if not, keeps asking.

        A StateRefusedError may also mean that the server can no longer provide the level.
        """
        return self._barrier is not None and self._barrier.is_open and self._barrier.answer(timeout_s)

    def note_durable(self, confirmed_txid: int) -> None:
        """Stores the last txid known to be as durable as asked, for display; called once, when a run is done."""
        self._write_barrier(self._connection, confirmed_txid)

    @property
    def dead_letters(self) -> RedisDeadLetters:
        return RedisDeadLetters(self._connection, self.keys)

    @property
    def ownership(self) -> Ownership:
        """The fence and the generation of this run, after `acquire`."""
        if self._owned.current is None:
            raise ProtocolError(f"topology {self.keys.topology_id!r} was used before it was acquired")
        return self._owned.current

    def confirm(self) -> None:
        """Checks that the server still holds every write of this owner; called before a run reports success."""
        if self._to_store != self._stored:  # accepted by the user, but not stored by any write yet
            self.store_metadata({})
        reached("confirm.sending")
        self._owned_reply("confirm", self.keys.control)
        reached("confirm.answered")

    def last_group(self) -> tuple[TransactionAttempt, ...]:
        """Returns the attempts that the spout's committer may not have heard about; at most `RECEIPTS_KEPT`.

        They are the last committed group, or more after a run that was late in notifying. Only the owner may ask, so
        that no spout is notified of a group that the server no longer holds.
        """
        items = self._owned_reply("last_group", self.keys.control, self.keys.receipts)
        receipts = {int(items[i]): parse_receipt(self.keys, text_of(items[i + 1])) for i in range(0, len(items), 2)}
        return tuple(TransactionAttempt(txid, receipt.attempt_id) for txid, receipt in receipts.items() if receipt)

    def _refuse_two_places(self, moves: int) -> None:
        """Refuses to be the owner on two servers, which may hold different histories.

        Fences and revisions distinguish writes. But tasks, which may still use the old server, know their run only by
        its nonce.
        """
        if self._connection.moves != moves:
            raise StateUnreachableError(
                f"server {self.server} has moved just when topology {self.keys.topology_id!r} was taken over; this "
                "run has not begun, so start it again"
            )

    def _acquired(self, reply: Sequence[Any], source_fingerprint: str, topology: str) -> FoundTopology:
        fence, generation, revision, committed, stored_sum, stored_source, stored_topology = map(text_of, reply[1:8])
        packed, found_sum = verified_metadata(self.keys, reply[8:], stored_sum)
        metadata = unpack_metadata(self.keys, packed)
        self._owned.begin(Ownership(fence, generation, int(revision)))
        self._metadata_sum = found_sum
        self._stored = Descriptions(stored_source, stored_topology)
        self._to_store = Descriptions(source_fingerprint, topology)
        return FoundTopology(int(committed), stored_source, stored_topology, metadata)

    def _write_barrier(self, connection: RedisConnection, confirmed_txid: int) -> None:
        stored = [durable_field(self._asked.level), str(confirmed_txid)] if confirmed_txid else ["", ""]
        change = self._metadata_sum.change({}, ())
        reply = self._write("barrier", [self.keys.control], stored, change, connection)
        self._owned.require("cannot confirm what is durable", reply)

    def _write(
        self,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[Argument],
        change: MetadataSumChange,
        connection: RedisConnection | None = None,
    ) -> CommitReply:
        """Makes the owner's next write; the server applies it at the expected revision or refuses it without effect."""
        with self._sequence:
            descriptions = self._to_store.changes(self._stored)
            digest = call_digest([*descriptions, *arguments])
            head = [*self.ownership.arguments(), digest, str(change), *descriptions]
            send = (connection or self._connection).function
            reply = reply_of(send(name, str(len(keys)), *keys, *head, *arguments))
            if self._owned.advance(reply):
                self._metadata_sum.accept(change)
                self._stored = self._to_store
            return reply

    def _owned_reply(self, name: str, *keys: str) -> list[Any]:
        """Calls a read-only function that answers only the owner, and returns its reply."""
        reply = self._connection.function(name, str(len(keys)), *keys, *self.ownership.arguments(), read_only=True)
        if text_of(reply[0]) != CommitStatus.OK:
            self._owned.require("was stopped", reply_of(reply))
        return list(reply[2:])
