"""The outbox of a batch inside a plain topology: sends its tuples, and reports to the ackers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from coordinated_bolt.columns import Rows
from coordinated_bolt.transport.outbox import EMITTED_LATE
from coordinator.plain.tasks.message_packer import EDGE_BITS, MessagePacker
from coordinator.plain.tasks.messages import coord_message, regular_message
from state.attempt import TransactionAttempt


class SubtopologyOutbox:
    """The `RowOutbox` of one batch on one task of a sub-topology, which sends each tuple as a message.

    Tuples for tasks inside the sub-topology are counted, and the counts are reported at the end: only these reports are
    in the ack tree, however many tuples a batch has. Tuples for bolts outside are not counted, so they are in the tree
    themselves.

    Args:
        batch: the batch.
        roots: the trees that the batch belongs to.
        sender: task id of the sender.
        inside: every task downstream within the sub-topology; each gets a report.
        outbox: outbox of the task.
        random: draws the edges.

    Attributes:
        transferred: stream index -> tuples sent on it, counted once per target.

    Differs from Storm: tuples for bolts outside the sub-topology are anchored on the tuple that began the batch; in
    Storm, the spout does not learn whether they arrive.
    """

    def __init__(
        self,
        batch: TransactionAttempt,
        roots: Sequence[int],
        *,
        sender: int,
        inside: Sequence[int],
        outbox: MessagePacker,
        random: Random,
    ) -> None:
        self._batch = batch
        self._roots = roots
        self._sender = sender
        self._counts = dict.fromkeys(inside, 0)
        self.transferred: dict[int, int] = {}
        self._edges: dict[int, int] = {}
        self._outbox = outbox
        self._random = random
        self._is_closed = False

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""
        if self._is_closed:
            raise RuntimeError(EMITTED_LATE)
        sender, roots = self._sender, self._roots
        if target in self._counts:
            message = regular_message(sender, target, batch=self._batch, roots=roots, stream_index=stream, values=row)
            self._outbox.send(message)
            self._counts[target] += 1
        else:
            edge = self._random.getrandbits(EDGE_BITS)
            self._outbox.add(target, stream, row, dict.fromkeys(roots, edge))
            self._edges[target] = self._edges.get(target, 0) ^ edge
        self.transferred[stream] = self.transferred.get(stream, 0) + 1

    def add_all(self, target: int, stream: int, rows: Rows) -> None:
        """Sends many rows to a target."""
        for row in rows:
            self.add(target, stream, row)

    def close(self) -> dict[int, int]:
        """Sends a report to every target in the sub-topology; returns target -> xor of all edges to it."""
        for target, tuple_count in self._counts.items():
            edge = self._random.getrandbits(EDGE_BITS)
            anchored = dict.fromkeys(self._roots, edge)
            report = coord_message(self._sender, target, batch=self._batch, roots=anchored, tuple_count=tuple_count)
            self._outbox.send(report)
            self._edges[target] = edge
        self._is_closed = True
        return self._edges
