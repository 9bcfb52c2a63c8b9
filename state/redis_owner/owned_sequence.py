"""The writes of one owner to one slot, a topology's own or a shard's: each at the revision it expects."""

from __future__ import annotations

from state.commits.commit import CommitReply, CommitStatus
from state.errors import FencedError, StateRefusedError
from state.redis_owner.arguments import Ownership
from state.redis_owner.refusals import state_not_as_left, trouble_of


class OwnedSequence:
    """Where the owner of a slot is in its sequence of writes.

    Args:
        topology_id: of the topology.
        slot: how messages name the slot.

    Attributes:
        current: what the next call carries; None until the slot was taken over.
    """

    def __init__(self, topology_id: str, slot: str) -> None:
        self._topology_id, self._slot = topology_id, slot
        self.current: Ownership | None = None

    def begin(self, ownership: Ownership) -> None:
        """Begins with what the takeover has answered."""
        self.current = ownership

    def advance(self, reply: CommitReply) -> bool:
        """Notes the answer to a write; returns whether it was applied, now or before."""
        was_applied = reply.status in (CommitStatus.OK, CommitStatus.ALREADY)
        if was_applied and self.current is not None:
            self.current = self.current.after_write()
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
