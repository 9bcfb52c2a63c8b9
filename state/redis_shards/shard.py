"""One shard of a topology: a slot that holds a share of the states, and the owner's calls to it.

The calls are fenced and form a separate sequence for each shard, as those of `RedisStore` do at home.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Unpack

from state.codec import pack_strings
from state.commits.commit import CommitReply, CommitStatus
from state.commits.write_set import WriteSet
from state.errors import ProtocolError, StateRefusedError, StateUnreachableError
from state.keys import Keys
from state.kinds.state_family import PartType
from state.records.declared_states import OwnedKeys
from state.records.durability import DurabilityLevel
from state.redis_client.connection import RedisConnection, text_of
from state.redis_client.packed_call import Argument
from state.redis_owner.arguments import Descriptions, Ownership, call_digest, refuse_bytes, reply_of, state_sections
from state.redis_owner.barrier import require_syncs
from state.redis_owner.measured_durability import SYNC_SETTINGS
from state.redis_owner.owned_sequence import OwnedSequence
from state.redis_owner.refusals import acquire_refusal
from state.redis_owner.slot import ConnectionOptions, RedisSlot
from state.redis_shards.asking import Asking, Result, asked_together
from state.redis_shards.copies import PartCopy
from state.troubles import Trouble

DECISIONS_KEPT = 256
"""How many of the last decisions a shard keeps: the most groups that home may lose and recover."""
COPIED_BYTES = 8 * 2**20
"""How many bytes of other shards' parts a shard keeps; it keeps those of the last group whatever their size."""
ANSWER_S = 0.1
"""How long one wait for replicas' confirmation takes at most."""
PAUSE_LOOKS, PAUSE_LOOK_S = 2_000, 0.005
"""How often, and at what interval, a group that is asked to wait checks again; after ten seconds it begins anyway."""


@dataclass(frozen=True, slots=True)
class ShardWrites:
    """A shard's part of a group, encoded to be sent.

    Attributes:
        keys: the keys of the states that it changes.
        sections: the changes, packed.
    """

    keys: tuple[str, ...]
    sections: bytes

    @classmethod
    def of(cls, keys: Keys, write_set: WriteSet, *, is_group: bool) -> ShardWrites:
        """Returns the writes for a shard with these keys; raises CommitTooLargeError as `state_sections`."""
        sections = pack_strings(state_sections(write_set, first_key=5, is_group=is_group))
        refuse_bytes(len(sections), write_set)
        return cls(tuple(map(keys.state, write_set.states)), sections)


@dataclass(frozen=True, slots=True)
class ShardProgress:
    """The progress of a shard, found at its takeover.

    Attributes:
        committed: the last txid that the shard has applied.
        chain: digest of everything decided up to that txid; "" before the first group.
        described: home's descriptions at that decision; the source fingerprint is "" if an earlier version applied it.
        staged_chain: the chain of the group whose part is staged; "" if nothing is staged.
    """

    committed: int
    chain: str
    described: Descriptions
    staged_chain: str = ""


class Shard(RedisSlot):
    """One shard (driver); safe to use from one thread at a time.

    Its calls raise StateRefusedError and StateUnreachableError as those of `RedisSlot`.

    Args:
        home: the topology's own keys.
        number: the shard's number, from 0.
    """

    def __init__(self, url: str, home: Keys, number: int, **options: Unpack[ConnectionOptions]) -> None:
        super().__init__(url, home.shard(number).topology_id, keys=home.shard(number), **options)
        self.number = number
        self._home = home
        self._owned = OwnedSequence(home.topology_id, f"{self.name},")
        self._staged_keys: tuple[str, ...] = ()
        self._described = Descriptions("", "")

    @property
    def name(self) -> str:
        """The shard's name in messages."""
        return f"shard {self.number} of topology {self._home.topology_id!r} ({self.keys.control!r} at {self.server})"

    def refuse_taken(self) -> None:
        """Refuses a slot that holds a topology of the shard's name; called before anything is written."""
        if int(self._connection.call("EXISTS", self.keys.other_control)):
            raise self._taken()

    def _taken(self) -> StateRefusedError:
        return StateRefusedError(
            f"{self.name} is taken: a topology named {self.keys.topology_id!r} lives there; choose another id for one "
            "of them"
        )

    def take(self, fence: str, generation: str, topology: str) -> ShardProgress | None:
        """Takes the shard over for the owner of home; None if the shard already had an owner with as high a fence.

        In that case home has lost its last takeovers; the next one gets a higher fence.
        """
        moves = self._connection.moves
        own = [self.keys.control, self.keys.staged, self.keys.other_control, self.keys.decisions, self.keys.copies]
        status, *found = map(text_of, self._connection.function("take_shard", "5", *own, fence, generation, topology))
        if status == "RACED":
            return None
        if status == "FOREIGN":
            raise self._taken()
        if status == "OTHER_LIFE":
            raise StateRefusedError(
                f"{self.name} does not belong to the topology as it is in its home slot, which was dropped, restored "
                f"or lost without the shard; restore both from one backup, or start over with `txbatch drop "
                f"{self._home.topology_id}`"
            ).about(Trouble.REGRESSED)
        if status != "OK":
            raise acquire_refusal(self._home.topology_id, status, [f"{self.name}: {found[0]}"])
        if self._connection.moves != moves:
            raise StateUnreachableError(
                f"{self.name} has moved just when it was taken over; this run has not begun, so start it again"
            )
        revision, committed, chain, source, description, staged_chain, keys = found
        self._owned.begin(Ownership(fence, generation, int(revision)))
        self._staged_keys = tuple(keys.split("\n")) if keys else ()
        self._described = Descriptions(source, description)
        return ShardProgress(int(committed), chain, self._described, staged_chain)

    def stage(
        self, part: ShardWrites, chain: str, last_txid: int, decision: bytes, copy: bytes = b""
    ) -> Asking[CommitReply]:
        """Stores the shard's part of a group, invisibly; returns a refusal if the shard could not commit the part.

        Args:
            part: the shard's part; may be empty, since a shard follows every group.
            chain: digest of everything decided, this group included.
            last_txid: the group's last txid.
            decision: the call by which home will decide the group, packed.
            copy: a copy of other shards' parts, packed, if the shard keeps any.
        """
        self._staged_keys = part.keys
        keys = [self.keys.control, self.keys.staged, self.keys.pause, self.keys.copies, *part.keys]
        identity: list[Argument] = [chain, str(last_txid), decision]  # the chain is a digest of all other content
        content: list[Argument] = [*identity, "\n".join(part.keys), part.sections, copy]
        for _ in range(PAUSE_LOOKS):
            reply = yield from self._write("stage_part", keys, [*content, "waits"], identity)
            if reply.status is not CommitStatus.PAUSED:
                return self._named(reply)
            self._sleep(PAUSE_LOOK_S)
        return self._named((yield from self._write("stage_part", keys, [*content, ""], identity)))

    def make_durable(self) -> None:
        """Waits until the staged part is as durable as the run asked, so that it outlives the decision.

        Raises StateRefusedError if that takes too long; nothing was decided.
        """
        if self._asked.level is DurabilityLevel.FSYNC:  # then the server syncs before it replies
            require_syncs(self._connection.call(*SYNC_SETTINGS), self.server)
        if self._asked.level is not DurabilityLevel.REPLICA:
            return
        barrier = self._own_barrier()
        barrier.ask(lambda: self._write_barrier(barrier.wrapped))
        started_s = self._clock()
        while not barrier.answer(timeout_s=ANSWER_S):
            if self._clock() - started_s > self.unreachable_timeout_s:
                barrier.close()
                raise StateRefusedError(
                    f"{self.name} has confirmed nothing at durability {self._asked.level.value} for "
                    f"{self.unreachable_timeout_s:g} s: a replica is away or lags; fix that, or ask for less, and run "
                    "again; nothing was decided, and nothing is lost"
                ).about(Trouble.NOT_DURABLE)

    def apply(self, chain: str, described: Descriptions) -> Asking[int]:
        """Makes the staged part visible, once home has decided the group of this chain with these descriptions.

        Returns how many parts and fields had expired when they were written. A refusal means that someone else has
        changed the shard; it stops the run, and the next run applies the part once the cause is gone.
        """
        keys = [self.keys.control, self.keys.staged, self.keys.decisions, self.keys.copies, *self._staged_keys]
        kept = [str(DECISIONS_KEPT), str(COPIED_BYTES)]
        changes = described.changes(self._described)
        reply = yield from self._write("apply_part", keys, [chain, *kept], descriptions=changes)
        if reply.status in (CommitStatus.TYPE, CommitStatus.LIMIT):
            raise StateRefusedError(
                f"{self.name} refuses what it had accepted: {reply.detail}; something other than txbatch has changed "
                "it since; mend that, and run again: the group is decided, nothing is lost, and the next run applies it"
            ).about(Trouble.STATE_VALUE)
        self._owned.require("cannot apply a group", reply)
        self._described = described
        return int(reply.detail) if reply.status is CommitStatus.OK else 0

    def decisions(self) -> list[bytes]:
        """Returns the last decisions that the shard has applied, packed, in order."""
        return [bytes(each) for each in self._connection.call("LRANGE", self.keys.decisions, "0", "-1")]

    def copies(self) -> list[PartCopy]:
        """Returns the parts of other shards that this shard keeps, of groups that it has applied itself."""
        found = self._connection.call("LRANGE", self.keys.copies, "0", "-1")
        return [copy for each in found for copy in PartCopy.all_unpacked(bytes(each))]

    @property
    def place(self) -> Hashable:
        """Identifies the shard's server: equal for shards on one server."""
        client = self._connection.client
        if self._connection.follows:
            return client.place_of(self.keys.control)  # type: ignore[no-any-return] # of two clients
        return id(client) if self._is_injected else self.server

    def confirm(self) -> None:
        """Checks that the shard still holds every write of this owner."""
        arguments = [self.keys.control, *self._ownership().arguments()]
        self._owned.require(
            "was stopped", reply_of(self._connection.function("confirm", "1", *arguments, read_only=True))
        )

    def unrecorded(self, description: str) -> list[str]:
        """Returns the states of a topology with this description that exist on the shard, sorted."""
        owned = OwnedKeys.of(description)
        with_parts = (name for name, forms in owned.forms.items() if forms & {*PartType})
        return sorted(self.existing_states(owned.whole(), with_parts))

    @property
    def busy_s(self) -> float:
        return self._connection.busy_s

    def _ownership(self) -> Ownership:
        if self._owned.current is None:
            raise ProtocolError(f"{self.name} was used before it was taken over")
        return self._owned.current

    def ask(self, asked: Asking[Result], connection: RedisConnection | None = None) -> Result:
        """Returns the result of this shard's conversation alone."""
        return asked_together([(connection or self._connection, asked)])[0]

    def _write(
        self,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[Argument],
        identity: Sequence[Argument] | None = None,
        descriptions: Sequence[Argument] = ("", ""),
    ) -> Asking[CommitReply]:
        """Makes the owner's next write; `identity` (by default all arguments) distinguishes it from any other write."""
        digest = call_digest([name, *(identity or arguments)])
        head = [*self._ownership().arguments(), digest, "", *descriptions]  # only home has metadata, and its checksum
        reply = reply_of((yield name, [str(len(keys)), *keys, *head, *arguments]))
        self._owned.advance(reply)
        return reply

    def _write_barrier(self, connection: RedisConnection) -> None:
        reply = self.ask(self._write("barrier", [self.keys.control], ["", ""]), connection)
        self._owned.require("cannot confirm what is durable", reply)

    def _named(self, reply: CommitReply) -> CommitReply:
        """Returns the reply; its detail names the shard, unless it already names a key of the user's."""
        if reply.status in (CommitStatus.OK, CommitStatus.ALREADY, CommitStatus.TYPE, CommitStatus.LIMIT):
            return reply
        return CommitReply(reply.status, f"{self.name}: {reply.detail}", cause=reply.cause)
