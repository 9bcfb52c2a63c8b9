"""What one task of a plain topology sends to another.

Plain data only, so that an engine may keep a message in a list or carry it between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class MessageKind(IntEnum):
    """What a message is; its payload in brackets."""

    TUPLE = 1
    """A tuple for a bolt (stream index of the source, values, root -> edge)."""
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


@dataclass(frozen=True, slots=True)
class Message:
    """One message; make it with the functions below, which know each payload.

    Attributes:
        source: task id of the sender; `DRIVER` for the engine itself.
        target: task id of the receiver.
        kind: what it is.
        payload: plain data, see `MessageKind`.
    """

    source: int
    target: int
    kind: MessageKind
    payload: tuple[Any, ...]

    @property
    def root(self) -> int:
        """The root a message about a tree speaks of; every kind but TUPLE and TICK has one."""
        root: int = self.payload[0]
        return root

    def to_wire(self) -> list[Any]:
        """Plain data for the codec."""
        return [self.source, self.target, int(self.kind), list(self.payload)]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Message:
        """Inverse of `to_wire`."""
        source, target, kind, payload = wire
        return cls(source, target, MessageKind(kind), tuple(payload))


SendMessage = Callable[[Message], None]
"""How a task sends. Messages of one task to one other must arrive in the order they were sent."""


def tuple_message(
    source: int, target: int, *, stream_index: int, values: Sequence[Any], roots: Mapping[int, int]
) -> Message:
    """A tuple for a bolt task."""
    return Message(source, target, MessageKind.TUPLE, (stream_index, list(values), dict(roots)))


def tree_message(kind: MessageKind, source: int, target: int, root: int) -> Message:
    """A FAIL, RESET_TIMEOUT, ACKED or FAILED."""
    return Message(source, target, kind, (root,))


def edges_message(kind: MessageKind, source: int, target: int, *, root: int, edges: int) -> Message:
    """An INIT or ACK."""
    return Message(source, target, kind, (root, edges))


def tick_message(source: int, target: int, period_s: float) -> Message:
    """A TICK."""
    return Message(source, target, MessageKind.TICK, (period_s,))


def acker_of(root: int, acker_tasks: Sequence[int]) -> int:
    """The acker task that keeps a root; every sender has to choose the same."""
    return acker_tasks[root % len(acker_tasks)]
