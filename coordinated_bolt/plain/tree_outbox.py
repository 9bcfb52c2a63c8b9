"""What a task of a plain topology sends: tuples, and what the ackers have to know of their trees.

Where tuples travel in waves, `MessagePacker` takes them without making a message of each; `MessageOutbox` makes
messages, for an engine that delivers these one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from coordinated_bolt.plain.acker_messages import AckerMessages
from coordinated_bolt.plain.messages import Message, SendMessage, tuple_message


class RootOutbox(Protocol):
    """Takes what one spout task sends; nothing is delivered before its methods return (driver)."""

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int], /) -> None:
        """Sends a tuple; `roots` is root -> edge, and belongs to the outbox from then on, but `row` does not.

        Raises:
            CodecError: a value cannot travel or is too large.
        """

    def init(self, root: int, edges: int) -> None:
        """Tells the acker that the spout has begun a tree; `edges` is the xor of its first edges."""


class TreeOutbox(Protocol):
    """Takes what one bolt task sends; nothing is delivered before its methods return (executor)."""

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int], /) -> None:
        """Sends a tuple, as `RootOutbox.add`."""

    def ack(self, root: int, edges: int, /) -> None:
        """Tells the acker the xor of some edges that the task has received and sent in a tree."""

    def fail(self, root: int) -> None:
        """Tells the acker that a tree has failed."""

    def reset_timeout(self, root: int) -> None:
        """Asks the spout of a tree to restart its timeout."""

    def send(self, message: Message, /) -> None:
        """Sends any message; tasks of sub-topologies send nothing else."""


class MessageOutbox(AckerMessages):
    """The outbox of any task that sends a message for everything.

    Args:
        task_id: the sender.
        acker_tasks: every acker task.
        send: takes the messages.
    """

    def __init__(self, task_id: int, acker_tasks: Sequence[int], send: SendMessage) -> None:
        super().__init__(task_id, acker_tasks, send)
        self.send = send
        self._sender = task_id

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int]) -> None:
        """Sends a TUPLE."""
        self.send(tuple_message(self._sender, target, stream_index=stream_index, values=row, roots=roots))
