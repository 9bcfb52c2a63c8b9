"""What one task hands to another in the same process for one attempt: its tuples, and how many there are.

The memory's counterpart of frames. Values arrive as if they had been packed and unpacked: with the same types, and
shared with nobody. The count is reported and compared, and there is an edge for the ack tree, as for tuples that
travel; only the digest of bytes is missing from it, since there are no bytes that could change on the way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from coordinated_bolt.columns import Columns, Rows, Stretch, add_columns
from coordinated_bolt.transport.edges import handed_edge
from coordinated_bolt.transport.outbox import RowOutbox, check_tuple_size
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.values.own_copy import ATOMS

_PLAIN = ATOMS | {str}
"""Types whose values the codec returns unchanged, and which nobody can change."""
_PORTION = 256
"""Rows looked at together; if one of their values is not plain, all of them pass the codec."""


class HandOver:
    """The tuples of one attempt from one task to another, in the order of their emits.

    The sender adds rows and closes it, on which the receiver takes it; see `BatchTask.run_handed`.

    Attributes:
        attempt: what the tuples belong to.
        sender: task id of the sender.
        target: task id of the receiver.
        stretches: what is handed over, as in a frame.
        reported_count: how many tuples the sender says it has sent; None until it has closed.
    """

    __slots__ = ("attempt", "reported_count", "sender", "stretches", "target")

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int) -> None:
        self.attempt, self.sender, self.target = attempt, sender, target
        self.stretches: list[Stretch] = []
        self.reported_count: int | None = None

    def rows_of(self, stream: int) -> list[list[Any]]:
        """Returns the list to which the next rows of a stream are added."""
        if self.stretches:
            last_stream, rows = self.stretches[-1]
            if last_stream == stream and isinstance(rows, list):
                return rows
        added: list[list[Any]] = []
        self.stretches.append((stream, added))
        return added

    def extend(self, stream: int, rows: Rows) -> None:
        """Adds rows of a stream, held as they are given."""
        if isinstance(rows, Columns):
            add_columns(self.stretches, stream, rows)
        else:
            self.rows_of(stream).extend(rows)

    def close(self) -> int:
        """Makes the rows the receiver's own and reports their number; returns the edge.

        Raises:
            CodecError: a single tuple is too large for any receiver.
        """
        self.stretches = [(stream, received(rows)) for stream, rows in self.stretches]
        self.reported_count = sum(len(rows) for _, rows in self.stretches)
        return handed_edge(self.attempt, self.sender, self.target, self.reported_count)


class HandingOutbox:
    """The `RowOutbox` of a task with chained targets: hands rows to these, leaves the others to an outbox of frames.

    Args:
        framed: the outbox to all other targets.
        handed: what each chained target is handed.

    Attributes:
        transferred: stream index -> tuples sent on it, counted once per target.
    """

    def __init__(self, framed: RowOutbox, handed: Collection[HandOver]) -> None:
        self._framed = framed
        self._handed: Mapping[int, HandOver] = {each.target: each for each in handed}
        self.transferred: dict[int, int] = {}

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""
        handed = self._handed.get(target)
        if handed is None:
            self._framed.add(target, stream, row)  # which knows what to say once all is closed
        else:
            handed.rows_of(stream).append(row)

    def add_all(self, target: int, stream: int, rows: Rows) -> None:
        """Sends many rows to a target, held as they are given."""
        handed = self._handed.get(target)
        if handed is None:
            self._framed.add_all(target, stream, rows)
        else:
            handed.extend(stream, rows)

    def close(self) -> dict[int, int]:
        """Reports to every target; returns target -> edge.

        Raises:
            CodecError: a tuple is too large for any receiver.
        """
        edges = {target: handed.close() for target, handed in self._handed.items()}
        self.transferred = _counted(self._handed.values())
        edges |= self._framed.close()
        for stream, count in self._framed.transferred.items():
            self.transferred[stream] = self.transferred.get(stream, 0) + count
        self._handed = {}
        return edges


def received(rows: Rows) -> Rows:
    """Returns rows as a receiver of frames would have them; a list is changed, and columns must be the sender's own.

    Raises:
        CodecError: a tuple that is not plain is too large.
    """
    if isinstance(rows, Columns):
        if all(set(map(type, column)) <= _PLAIN for column in rows.lists):
            return rows
        listed = list(rows)
        make_received(listed)
        return Columns.of_rows(listed, len(rows.lists))
    make_received(rows)
    return rows


def make_received(rows: list[list[Any]]) -> None:
    """Replaces rows by copies as a receiver of frames would have them, a portion at a time.

    Raises:
        CodecError: a tuple that is not plain is too large.
    """
    for start in range(0, len(rows), _PORTION):
        portion = rows[start : start + _PORTION]
        is_plain = set(map(type, chain.from_iterable(portion))) <= _PLAIN
        rows[start : start + _PORTION] = map(list if is_plain else _through_codec, portion)


def received_row(row: list[Any]) -> list[Any]:
    """Returns a copy of one row as a receiver of frames would have it.

    Raises:
        CodecError: a tuple that is not plain is too large.
    """
    for value in row:
        if type(value) not in _PLAIN:
            return _through_codec(row)
    return list(row)


def _through_codec(row: list[Any]) -> list[Any]:
    packed = pack(row)
    check_tuple_size(packed)
    copied: list[Any] = unpack(packed)
    return copied


def _counted(handed: Iterable[HandOver]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for each in handed:
        for stream, rows in each.stretches:
            counts[stream] = counts.get(stream, 0) + len(rows)
    return counts
