"""Where a plain task's tuples go, and what the ackers have to know of their trees; inside a sub-topology, too."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

from coordinated_bolt.columns import Rows
from coordinated_bolt.plain.messages import Message, coord_message, regular_message
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

    def add_all(
        self, target: int, stream_index: int, rows: Sequence[list[Any]], roots: Sequence[int], edges: Sequence[int], /
    ) -> None:
        """Sends small tuples, see `is_small`, each with one root and edge, or with none; as `add`."""

    def init(self, root: int, edges: int, /) -> None:
        """Tells the acker that the spout has begun a tree; `edges` is the xor of its first edges."""

    def begin(self, begun: dict[int, int], /) -> None:
        """Tells the same of many: root -> edges."""


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
        outbox: of the task.
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
        outbox: TreeOutbox,
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
        """Sends a report to every target inside; returns target -> xor of all edges to it."""
        for target, tuple_count in self._counts.items():
            edge = self._random.getrandbits(EDGE_BITS)
            anchored = dict.fromkeys(self._roots, edge)
            report = coord_message(self._sender, target, batch=self._batch, roots=anchored, tuple_count=tuple_count)
            self._outbox.send(report)
            self._edges[target] = edge
        self._is_closed = True
        return self._edges
