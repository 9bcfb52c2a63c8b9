"""The sequence of one owner's writes to one slot, a topology's own or a shard's: each at the revision it expects."""

from __future__ import annotations

from state.commits.commit import CommitReply, CommitStatus
from state.errors import FencedError, StateRefusedError
from state.redis_owner.arguments import Ownership
from state.redis_owner.refusals import state_not_as_left, trouble_of


class OwnedSequence:
    """The owner's position in its sequence of writes to a slot.

    Args:
        topology_id: the topology's id, for errors.
        slot: the slot's name in messages.

    Attributes:
        current: the ownership that the next call carries; None until the slot was taken over.
    """

    def __init__(self, topology_id: str, slot: str) -> None:
        self._topology_id, self._slot = topology_id, slot
        self.current: Ownership | None = None

    def begin(self, ownership: Ownership) -> None:
        """Begins with the ownership from the takeover's reply."""
        self.current = ownership

    def advance(self, reply: CommitReply) -> bool:
        """Takes in the reply to a write; returns whether the write was applied, now or before."""
        was_applied = reply.status in (CommitStatus.OK, CommitStatus.ALREADY)
        if was_applied and self.current is not None:
            self.current = self.current.after_write()
        return was_applied

    def require(self, what: str, reply: CommitReply) -> CommitReply:
        """Returns the reply to a call that fails only after a new takeover or a loss on the server.

        Raises:
            FencedError: a newer owner has the topology, or it was dropped.
            StateRefusedError: the server no longer holds this owner's last writes.
        """
        if reply.status in (CommitStatus.OK, CommitStatus.ALREADY):
            return reply
        if reply.status in (CommitStatus.FENCED, CommitStatus.DROPPED):
            raise FencedError(self._topology_id, reply.status is CommitStatus.DROPPED)
        raise StateRefusedError(
            f"{self._slot} {what}: {reply.status}: {reply.detail}; {state_not_as_left(reply)}"
        ).about(trouble_of(reply.status))
