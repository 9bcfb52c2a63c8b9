"""Where a plain task's tuples go, and what the ackers have to know of their trees; inside a sub-topology, too.

Where tuples travel in waves, `MessagePacker` takes them without making a message of each; `MessageOutbox` makes
messages, for an engine that delivers these one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from coordinated_bolt.columns import Rows
from coordinated_bolt.plain.messages import (
    Message,
    MessageKind,
    SendMessage,
    acker_of,
    coord_message,
    edges_message,
    regular_message,
    tree_message,
    tuple_message,
)
from coordinated_bolt.transport.outbox import EMITTED_LATE
from state.attempt import TransactionAttempt

EDGE_BITS = 64


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


class MessageOutbox:
    """The outbox of any task that sends a message for everything (executor, or driver for spouts).

    Args:
        task_id: the sender.
        acker_tasks: every acker task; without any, nothing about trees may be sent.
        send: takes the messages.
    """

    def __init__(self, task_id: int, acker_tasks: Sequence[int], send: SendMessage) -> None:
        self._task_id, self._acker_tasks = task_id, acker_tasks
        self.send = send

    def add(self, target: int, stream_index: int, row: list[Any], roots: dict[int, int]) -> None:
        """Sends a TUPLE."""
        self.send(tuple_message(self._task_id, target, stream_index=stream_index, values=row, roots=roots))

    def init(self, root: int, edges: int) -> None:
        """Sends that a spout has begun a tree; `edges` is the xor of its first edges."""
        self._send_edges(MessageKind.INIT, root, edges)

    def ack(self, root: int, edges: int) -> None:
        """Sends the xor of the edges that the task has received and sent in a tree."""
        self._send_edges(MessageKind.ACK, root, edges)

    def fail(self, root: int) -> None:
        """Sends that a tree has failed."""
        self._send_root(MessageKind.FAIL, root)

    def reset_timeout(self, root: int) -> None:
        """Asks the spout of a tree to restart its timeout."""
        self._send_root(MessageKind.RESET_TIMEOUT, root)

    def _send_edges(self, kind: MessageKind, root: int, edges: int) -> None:
        self.send(edges_message(kind, self._task_id, acker_of(root, self._acker_tasks), root=root, edges=edges))

    def _send_root(self, kind: MessageKind, root: int) -> None:
        self.send(tree_message(kind, self._task_id, acker_of(root, self._acker_tasks), root))


class SubtopologyOutbox:
    """The `RowOutbox` of one batch on one task of a sub-topology, which sends each tuple as a message.

    Tuples for tasks inside the sub-topology are counted, and their counts reported at the end: only these reports are
    in the ack tree, however many tuples a batch has. Tuples for bolts outside are in the tree themselves, because
    nobody counts them.

    Args:
        batch: the batch.
        roots: the trees it belongs to.
        sender: task id of the sender.
        inside: every task downstream within the sub-topology, each of which gets a report.
        send: takes the messages.
        random: draws the edges.

    Attributes:
        transferred: stream index -> tuples sent on it, counted once per target.

    Differs from Storm: tuples for bolts outside are anchored on the tuple that began the batch; in Storm the
    spout does not learn whether they arrive.
    """

    def __init__(
        self,
        batch: TransactionAttempt,
        roots: Sequence[int],
        *,
        sender: int,
        inside: Sequence[int],
        send: SendMessage,
        random: Random,
    ) -> None:
        self._batch = batch
        self._roots = roots
        self._sender = sender
        self._counts = dict.fromkeys(inside, 0)
        self.transferred: dict[int, int] = {}
        self._edges: dict[int, int] = {}
        self._send = send
        self._random = random
        self._is_closed = False

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""
        if self._is_closed:
            raise RuntimeError(EMITTED_LATE)
        sender, roots = self._sender, self._roots
        if target in self._counts:
            self._send(regular_message(sender, target, batch=self._batch, roots=roots, stream_index=stream, values=row))
            self._counts[target] += 1
        else:
            edge = self._random.getrandbits(EDGE_BITS)
            anchored = dict.fromkeys(roots, edge)
            self._send(tuple_message(sender, target, stream_index=stream, values=row, roots=anchored))
            self._edges[target] = self._edges.get(target, 0) ^ edge
        self.transferred[stream] = self.transferred.get(stream, 0) + 1

    def add_all(self, target: int, stream: int, rows: Rows) -> None:
        """Sends many rows to a target."""
        for row in rows:
            self.add(target, stream, row)

    def close(self) -> dict[int, int]:
        """Sends a report to every target inside; returns target -> xor of all edges to it."""
        for target, tuple_count in self._counts.items():
            edge = self._random.getrandbits(EDGE_BITS)
            anchored = dict.fromkeys(self._roots, edge)
            self._send(coord_message(self._sender, target, batch=self._batch, roots=anchored, tuple_count=tuple_count))
            self._edges[target] = edge
        self._is_closed = True
        return self._edges
