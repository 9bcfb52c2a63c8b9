"""Tuples of a plain topology that travel together: from one task, to one task, on one stream, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from coordinated_bolt.plain.messages import Message, MessageKind


class TupleStretch(NamedTuple):
    """Says what one TUPLE message for each tuple would say.

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


Parcel = TupleStretch | Message
"""What a frame holds one after the other."""
