"""The writes of one owner to one slot, a topology's own or a shard's: each at the revision it expects."""

from __future__ import annotations

from dataclasses import dataclass

from state.commits.commit import CommitReply, CommitStatus
from state.errors import FencedError, ProtocolError, StateRefusedError
from state.redis_client.packed_call import Argument
from state.redis_owner.refusals import state_not_as_left, trouble_of


@dataclass(frozen=True, slots=True)
class Ownership:
    """What every call of the owner carries.

    Attributes:
        fence: identifies the owner.
        generation: identifies this life of the topology; drawn when it was first started.
        revision: the exact number of writes that the server must have applied before this call.
    """

    fence: str
    generation: str
    revision: int

    def arguments(self) -> list[Argument]:
        return [self.fence, self.generation, str(self.revision)]

    def after_write(self) -> Ownership:
        return Ownership(self.fence, self.generation, self.revision + 1)


class OwnedSequence:
    """Where the owner of a slot is in its sequence of writes.

    Args:
        topology_id: of the topology.
        slot: how messages name the slot.
    """

    def __init__(self, topology_id: str, slot: str) -> None:
        self._topology_id, self._slot = topology_id, slot
        self._owned: Ownership | None = None

    @property
    def ownership(self) -> Ownership:
        """What the next call carries; a ProtocolError says that the slot was not taken over yet."""
        if self._owned is None:
            raise ProtocolError(f"{self._slot} was used before it was acquired")
        return self._owned

    def begin(self, ownership: Ownership) -> None:
        """Begins with what the takeover has answered."""
        self._owned = ownership

    def advance(self, reply: CommitReply) -> bool:
        """Notes the answer to a write; returns whether it was applied, now or before."""
        was_applied = reply.status in (CommitStatus.OK, CommitStatus.ALREADY)
        if was_applied:
            self._owned = self.ownership.after_write()
        return was_applied

    def require(self, what: str, reply: CommitReply) -> CommitReply:
        """Returns the answer to a call that only a newer owner, or a server that is not as it was left, refuses.

        Raises:
            FencedError: a newer owner has the topology, or it was dropped.
            StateRefusedError: the server no longer holds what this owner has left there.
        """
        if reply.status in (CommitStatus.OK, CommitStatus.ALREADY):
            return reply
        if reply.status in (CommitStatus.FENCED, CommitStatus.DROPPED):
            raise FencedError(self._topology_id, reply.status is CommitStatus.DROPPED)
        raise StateRefusedError(
            f"{self._slot} {what}: {reply.status}: {reply.detail}; {state_not_as_left(reply)}"
        ).about(trouble_of(reply.status))
