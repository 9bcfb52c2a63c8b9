"""What one task of a plain topology sends to another.

Plain data only, so that an engine may keep a message in a list or carry it between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from state.attempt import TransactionAttempt


class MessageKind(IntEnum):
    """What a message is; its payload in brackets."""

    TUPLE = 1
    """A tuple for a bolt (stream index of the sender, values, root -> edge)."""
    INIT = 2
    """A spout task tells an acker of a root it has emitted (root, xor of its edges)."""
    ACK = 3
    """A bolt task tells an acker that it acked a tuple (root, xor of the edges it received and sent)."""
    FAIL = 4
    """A bolt task tells an acker that it failed a tuple (root)."""
    RESET_TIMEOUT = 5
    """A bolt task asks an acker, and the acker the spout task, to start a root's time anew (root)."""
    ACKED = 6
    """An acker tells a spout task that a tree is complete (root)."""
    FAILED = 7
    """An acker tells a spout task that a tree has failed (root)."""
    TICK = 8
    """The engine tells a bolt task that its tick period is over (period in seconds)."""
    REGULAR = 9
    """A tuple within a batch of a sub-topology (batch, its roots, stream index of the sender, values)."""
    COORD = 10
    """A task has finished a batch and tells how many REGULAR ones it sent for it (batch, root -> edge, count)."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; make it with the functions below, which know each payload.

    Attributes:
        sender: task id of the sender; `DRIVER` for the engine itself.
        target: task id of the receiver.
        kind: what it is.
        payload: plain data, see `MessageKind`.
    """

    sender: int
    target: int
    kind: MessageKind
    payload: tuple[Any, ...]

    @property
    def root(self) -> int:
        """The root a message about a tree speaks of: an INIT, ACK, FAIL, RESET_TIMEOUT, ACKED or FAILED."""
        root: int = self.payload[0]
        return root

    @property
    def batch(self) -> TransactionAttempt:
        """The batch a REGULAR or COORD belongs to."""
        return TransactionAttempt(*self.payload[0])

    def to_wire(self) -> list[Any]:
        """Plain data for the codec."""
        return [self.sender, self.target, int(self.kind), list(self.payload)]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Message:
        """Inverse of `to_wire`."""
        sender, target, kind, payload = wire
        return cls(sender, target, MessageKind(kind), tuple(payload))


SendMessage = Callable[[Message], None]
"""How a task sends. Messages of one task to one other must arrive in the order they were sent."""


def tuple_message(
    sender: int, target: int, *, stream_index: int, values: Sequence[Any], roots: Mapping[int, int]
) -> Message:
    """A tuple for a bolt task."""
    return Message(sender, target, MessageKind.TUPLE, (stream_index, list(values), dict(roots)))


def regular_message(
    sender: int, target: int, *, batch: TransactionAttempt, roots: Sequence[int], stream_index: int, values: list[Any]
) -> Message:
    """A REGULAR."""
    payload = (_identity(batch), list(roots), stream_index, list(values))
    return Message(sender, target, MessageKind.REGULAR, payload)


def coord_message(
    sender: int, target: int, *, batch: TransactionAttempt, roots: Mapping[int, int], tuple_count: int
) -> Message:
    """A COORD."""
    return Message(sender, target, MessageKind.COORD, (_identity(batch), dict(roots), tuple_count))


def tree_message(kind: MessageKind, sender: int, target: int, root: int) -> Message:
    """A FAIL, RESET_TIMEOUT, ACKED or FAILED."""
    return Message(sender, target, kind, (root,))


def edges_message(kind: MessageKind, sender: int, target: int, *, root: int, edges: int) -> Message:
    """An INIT or ACK."""
    return Message(sender, target, kind, (root, edges))


def tick_message(sender: int, target: int, period_s: float) -> Message:
    """A TICK."""
    return Message(sender, target, MessageKind.TICK, (period_s,))


def acker_of(root: int, acker_tasks: Sequence[int]) -> int:
    """The acker task that keeps a root; every sender has to choose the same."""
    return acker_tasks[root % len(acker_tasks)]


def _identity(batch: TransactionAttempt) -> list[int]:
    return [batch.txid, batch.attempt_id]
