"""The tuples, and their count, that one task hands to another in the same process for one attempt.

The in-memory counterpart of frames. Values arrive as if they had been packed and unpacked: with the same types, and
shared with nobody. The count is reported and compared, and the ack tree gets an edge, as for tuples in frames; the edge
lacks only a digest of bytes, because there are no bytes that could change on the way.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from coordinated_bolt.columns import Columns, Rows
from coordinated_bolt.transport.edges import handed_edge
from coordinated_bolt.transport.outbox import HeldRows, check_tuple_size
from state.attempt import TransactionAttempt
from state.codec import pack, unpack
from state.values.own_copy import ATOMS

_PLAIN = ATOMS | {str}
"""Types of immutable values that the codec returns unchanged."""
_PORTION = 256
"""Rows checked together; if one of their values is not plain, all of them go through the codec."""


class HandOver(HeldRows):
    """The tuples of one attempt from one task to another; the receiver takes it once the sender has closed it.

    See `BatchTask.run_handed`.

    Attributes:
        reported_count: how many tuples the sender reports as sent; None until it has closed.
    """

    __slots__ = ("reported_count",)

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int) -> None:
        super().__init__(attempt, sender, target)
        self.reported_count: int | None = None

    def close(self) -> int:
        """Makes the rows the receiver's own and reports their number; returns the edge."""
        self.stretches = [(stream, received(rows)) for stream, rows in self.stretches]
        self.reported_count = sum(len(rows) for _, rows in self.stretches)
        return handed_edge(self.attempt, self.sender, self.target, self.reported_count)


def received(rows: Rows) -> Rows:
    """Returns rows as a receiver of frames would get them; changes a list in place; columns must be unshared.

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
    """Replaces rows by copies, as a receiver of frames would get them, a portion at a time.

    Raises:
        CodecError: a tuple that is not plain is too large.
    """
    for start in range(0, len(rows), _PORTION):
        portion = rows[start : start + _PORTION]
        is_plain = set(map(type, chain.from_iterable(portion))) <= _PLAIN
        rows[start : start + _PORTION] = map(list if is_plain else _through_codec, portion)


def received_row(row: list[Any]) -> list[Any]:
    """Returns a copy of one row, as a receiver of frames would get it.

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
