"""Messages between the tasks of a plain topology.

Plain data only, so that an engine may queue a message or send it to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from state.attempt import TransactionAttempt


class MessageKind(IntEnum):
    """Kinds of messages, each with its payload in brackets."""

    TUPLE = 1
    """A tuple for a bolt (stream index of the sender, values, root -> edge)."""
    INIT = 2
    """A spout task tells an acker of a root it has emitted (root, xor of its edges)."""
    ACK = 3
    """A bolt task tells an acker that it acked a tuple (root, xor of the edges it received and sent)."""
    FAIL = 4
    """A bolt task tells an acker that it failed a tuple (root)."""
    RESET_TIMEOUT = 5
    """A bolt task asks an acker, and the acker the spout task, to restart a root's timeout (root)."""
    ACKED = 6
    """An acker tells a spout task that a tree is complete (root)."""
    FAILED = 7
    """An acker tells a spout task that a tree has failed (root)."""
    TICK = 8
    """The engine tells a bolt task that its tick period has passed (period in seconds)."""
    REGULAR = 9
    """A tuple within a batch of a sub-topology (batch, its roots, stream index of the sender, values)."""
    COORD = 10
    """A task has finished a batch and reports how many REGULAR messages it sent for it (batch, root -> edge, count)."""


class Message(NamedTuple):
    """One message.

    A named tuple, because several messages are made for every tuple, four times as fast as dataclasses would be.

    Attributes:
        sender: task id of the sender; `DRIVER` for the engine itself.
        target: task id of the receiver.
        kind: kind of the message.
        payload: plain data; see `MessageKind`.
    """

    sender: int
    target: int
    kind: MessageKind
    payload: tuple[Any, ...]

    @property
    def root(self) -> int:
        """The root of a message about a tree: an INIT, ACK, FAIL, RESET_TIMEOUT, ACKED or FAILED."""
        root: int = self.payload[0]
        return root

    @property
    def batch(self) -> TransactionAttempt:
        """The batch a REGULAR or COORD belongs to."""
        return TransactionAttempt(*self.payload[0])


SendMessage = Callable[[Message], None]
"""Sends a message for a task. Messages from one task to another must arrive in the order they were sent."""


def regular_message(
    sender: int, target: int, *, batch: TransactionAttempt, roots: Sequence[int], stream_index: int, values: list[Any]
) -> Message:
    """Returns a REGULAR."""
    payload = (_identity(batch), list(roots), stream_index, list(values))
    return Message(sender, target, MessageKind.REGULAR, payload)


def coord_message(
    sender: int, target: int, *, batch: TransactionAttempt, roots: Mapping[int, int], tuple_count: int
) -> Message:
    """Returns a COORD."""
    return Message(sender, target, MessageKind.COORD, (_identity(batch), dict(roots), tuple_count))


def tree_message(kind: MessageKind, sender: int, target: int, root: int) -> Message:
    """Returns a FAIL, RESET_TIMEOUT, ACKED or FAILED."""
    return Message(sender, target, kind, (root,))


def tick_message(sender: int, target: int, period_s: float) -> Message:
    """Returns a TICK."""
    return Message(sender, target, MessageKind.TICK, (period_s,))


def _identity(batch: TransactionAttempt) -> list[int]:
    return [batch.txid, batch.attempt_id]


class TupleStretch(NamedTuple):
    """Tuples from one task to another on one stream, in order; replaces one TUPLE message for each tuple.

    Attributes:
        sender: task id of the sender.
        target: task id of the receiver, which may keep and change the lists below.
        stream_index: the stream, by its index at the sender.
        rows: the values of each tuple.
        trees: the trees of each tuple, root -> edge.
    """

    sender: int
    target: int
    stream_index: int
    rows: list[list[Any]]
    trees: list[dict[int, int]]

    def messages(self) -> Iterator[Message]:
        """Returns the tuples as messages."""
        for row, roots in zip(self.rows, self.trees, strict=True):
            yield Message(self.sender, self.target, MessageKind.TUPLE, (self.stream_index, row, roots))


StretchOrMessage = TupleStretch | Message
"""An item of a frame."""
