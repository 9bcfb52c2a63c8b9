"""The outbox of one task for one attempt: collects rows per target, counts and frames them.

This is the sending half of coordination by counting: `close` reports to every task downstream how many tuples it was
sent, zero included, and returns the edges for the ack tree. A `Carrier` takes frames and counts to the targets. A
target without tuples costs nothing here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from coordinated_bolt.columns import Columns, Rows, Stretch, add_columns, to_wire
from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind
from state.attempt import TransactionAttempt
from state.codec import MAX_BYTES, CodecError, pack

FRAME_TUPLES = 8_192
"""A frame is sent once it holds this many tuples: large frames are cheap, yet no task holds a large attempt twice."""

FRAME_BYTES_MAX = 64 * 1024 * 1024
"""A larger frame is sent in parts, because a receiver refuses more than the codec's `MAX_BYTES`."""
TUPLE_BYTES_MAX = MAX_BYTES - 1024
"""Largest tuple that fits into a frame a receiver accepts."""
EMITTED_LATE = "a tuple was emitted after finish_batch had returned; emit it before that"
"""Message about a tuple that is emitted after the counts were reported."""


class Sent(NamedTuple):
    """The number of frames and tuples sent to one target for one attempt."""

    frame_count: int
    tuple_count: int


class Carrier(Protocol):
    """Takes frames and counts for tasks downstream; each engine has its own."""

    def carry(self, attempt: TransactionAttempt, sender: int, target: int, *, sequence: int, payload: bytes) -> None:
        """Takes a frame; `sequence` is its position among the attempt's frames from sender to target."""

    def report(
        self, attempt: TransactionAttempt, sender: int, targets: Iterable[int], sent: Mapping[int, Sent]
    ) -> None:
        """Reports to every target how many tuples it was sent, once per attempt; none if it is not in `sent`."""


class RowOutbox(Protocol):
    """Sends the rows of one task for one attempt, by its own transport."""

    @property
    def transferred(self) -> Mapping[int, int]:
        """Stream index -> tuples sent on it, counted once per target."""

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""

    def add_all(self, target: int, stream: int, rows: Rows) -> None:
        """Sends many rows, a list or columns, to a target."""

    def close(self) -> dict[int, int]:
        """Sends a report to every target, ends sending, and returns target -> edge, for targets with tuples."""


NewOutbox = Callable[[TransactionAttempt], RowOutbox]


class HeldRows:
    """Rows of one attempt on their way to one target, in the order of their emits, as stretches of one stream each.

    They become frames, see `FramedRows`, or are handed over in memory.

    Attributes:
        attempt: the attempt of the rows.
        sender: task id of the sender.
        target: task id of the receiver.
        stretches: the rows.
        held: how many rows wait for `flush`, which is called once there are `most`.
    """

    __slots__ = ("_rows", "_stream", "attempt", "held", "most", "sender", "stretches", "target")

    def __init__(self, attempt: TransactionAttempt, sender: int, target: int, most: int = sys.maxsize) -> None:
        self.attempt, self.sender, self.target, self.most = attempt, sender, target, most
        self._stream = -1
        self._rows: list[list[Any]] = []
        self.stretches: list[Stretch] = []
        self.held = 0

    def rows_of(self, stream: int) -> list[list[Any]]:
        """Returns the list to which the next rows of a stream are added."""
        if stream != self._stream:
            self._stream = stream
            self._rows = []
            self.stretches.append((stream, self._rows))
        return self._rows

    def extend(self, stream: int, rows: Rows) -> None:
        """Adds rows, a list or columns; columns get a separate stretch."""
        if isinstance(rows, Columns):
            add_columns(self.stretches, stream, rows)
            self._stream = -1
        else:
            self.rows_of(stream).extend(rows)
        self.held += len(rows)

    def flush(self) -> None:
        """Sends the held rows, if rows are sent in parts."""

    def close(self) -> int:
        """Sends all rows and returns the edge, 0 if there are none.

        Raises:
            CodecError: a single tuple is too large for any receiver.
        """
        raise NotImplementedError


class FramedRows(HeldRows):
    """Rows that travel in frames."""

    __slots__ = ("_carrier", "_digest", "_transferred")

    def __init__(
        self,
        attempt: TransactionAttempt,
        sender: int,
        target: int,
        *,
        most: int,
        carrier: Carrier,
        transferred: dict[int, int],
    ) -> None:
        super().__init__(attempt, sender, target, most)
        self._carrier, self._transferred = carrier, transferred
        self._digest = EdgeDigest(attempt, sender, target)

    def flush(self) -> None:
        """Sends the held rows as one frame."""
        if self.held:
            self._send_rows(self.stretches, self.held)
            _count(self.stretches, self._transferred)
            self._stream, self.stretches, self.held = -1, [], 0

    def close(self) -> int:
        self.flush()
        return self._digest.edge_id()

    def sent(self) -> Sent:
        """Returns the numbers of frames and tuples sent so far."""
        return Sent(self._digest.frame_count, self._digest.tuple_count)

    def _send_rows(self, stretches: list[Stretch], tuple_count: int) -> None:
        """Sends rows as one frame, or as several if one would be too large.

        Raises:
            CodecError: a single tuple is too large for any receiver.
        """
        payload = pack([[stream, to_wire(rows)] for stream, rows in stretches])
        if len(payload) > FRAME_BYTES_MAX and tuple_count > 1:
            for part in _halves(stretches, tuple_count // 2):
                self._send_rows(part, sum(len(rows) for _, rows in part))
            return
        check_tuple_size(payload)
        sequence = self._digest.frame_count
        self._digest.add(sequence, payload, tuple_count)
        self._carrier.carry(self.attempt, self.sender, self.target, sequence=sequence, payload=payload)


class FrameOutbox:
    """The `RowOutbox` of one attempt on one task: rows travel in frames, or are handed to tasks in the same process.

    Args:
        attempt: the attempt.
        sender: task id of the sender.
        targets: every task downstream that gets frames and a report.
        carrier: takes each finished frame, and the report.
        frame_tuples: most tuples in a frame; 1 sends each tuple when it is emitted.
        handed: takes the rows for each other task downstream.

    Attributes:
        transferred: stream index -> tuples sent on it, counted once per target.
    """

    def __init__(
        self,
        attempt: TransactionAttempt,
        sender: int,
        targets: Collection[int],
        carrier: Carrier,
        frame_tuples: int = FRAME_TUPLES,
        *,
        handed: Sequence[HeldRows] = (),
    ) -> None:
        self._attempt, self._sender, self._targets = attempt, sender, targets
        self._carrier, self._frame_tuples = carrier, frame_tuples
        self.transferred: dict[int, int] = {}
        self._handed = handed
        self._framed: list[FramedRows] = []
        self._boxes: dict[int, HeldRows] = {each.target: each for each in handed} if handed else {}
        self._is_closed = False

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""
        box = self._boxes.get(target) or self._box(target)
        box.rows_of(stream).append(row)
        box.held += 1
        if box.held >= box.most:
            box.flush()

    def add_all(self, target: int, stream: int, rows: Rows) -> None:
        """Sends many rows to a target; columns stay together even if frames hold one tuple each."""
        box = self._boxes.get(target) or self._box(target)
        portion = max(box.most, FRAME_TUPLES) if isinstance(rows, Columns) else box.most
        for start in range(0, len(rows), portion):
            box.extend(stream, rows[start : start + portion] if len(rows) > portion else rows)
            if box.held >= box.most:
                box.flush()

    def close(self) -> dict[int, int]:
        """Sends a report to every target; returns target -> edge id, for targets that were sent tuples."""
        if not self._boxes:  # most attempts of many tasks send nothing
            self._is_closed = True
            if self._targets:
                self._carrier.report(self._attempt, self._sender, self._targets, {})
            return {}
        edges = {box.target: box.close() for box in (*self._handed, *self._framed)}
        for box in self._handed:
            _count(box.stretches, self.transferred)
        if self._targets:
            sent = {box.target: box.sent() for box in self._framed}
            self._carrier.report(self._attempt, self._sender, self._targets, sent)
        self._boxes, self._is_closed = {}, True
        return edges

    def _box(self, target: int) -> HeldRows:
        if self._is_closed:
            raise RuntimeError(EMITTED_LATE)
        if target not in self._targets:
            raise KeyError(target)
        carrier, most = self._carrier, self._frame_tuples
        box = FramedRows(self._attempt, self._sender, target, most=most, carrier=carrier, transferred=self.transferred)
        self._framed.append(box)
        self._boxes[target] = box
        return box


def _count(stretches: Iterable[Stretch], transferred: dict[int, int]) -> None:
    for stream, rows in stretches:
        transferred[stream] = transferred.get(stream, 0) + len(rows)


_NOTHING = Sent(0, 0)


class SingleFrames:
    """The `Carrier` of LocalCluster; passes on each `Frame` at once, in the calling thread.

    Args:
        send: takes the frames: REGULAR ones, and a COORD for each target of a task that has ended an attempt.
    """

    def __init__(self, send: Callable[[Frame], None]) -> None:
        self._send = send

    def carry(self, attempt: TransactionAttempt, sender: int, target: int, *, sequence: int, payload: bytes) -> None:
        """See `Carrier`."""
        self._send(Frame(attempt, sender, sequence, target, FrameKind.REGULAR, payload))

    def report(
        self, attempt: TransactionAttempt, sender: int, targets: Iterable[int], sent: Mapping[int, Sent]
    ) -> None:
        """See `Carrier`."""
        for target in targets:
            each = sent.get(target, _NOTHING)
            self._send(Frame(attempt, sender, each.frame_count, target, FrameKind.COORD, pack(each.tuple_count)))


def check_tuple_size(packed: bytes) -> None:
    """Refuses a packed tuple that no receiver would accept; called where it is emitted (executor, driver).

    Raises:
        CodecError: the tuple is too large.
    """
    if len(packed) > TUPLE_BYTES_MAX:
        raise CodecError(
            f"emitted tuple has {len(packed):,} bytes, more than the limit of {TUPLE_BYTES_MAX:,}; emit smaller "
            "tuples, or put the content where the receiver can read it and emit its name"
        )


def _halves(stretches: list[Stretch], first_count: int) -> tuple[list[Stretch], list[Stretch]]:
    """Splits stretches of rows after `first_count` rows, so equal stretches are always split alike."""
    first: list[Stretch] = []
    second: list[Stretch] = []
    for stream, rows in stretches:
        place = max(0, min(len(rows), first_count))
        first_count -= place
        if place:
            first.append((stream, rows[:place]))
        if place < len(rows):
            second.append((stream, rows[place:]))
    return first, second
