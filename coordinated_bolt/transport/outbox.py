"""What one task sends for one attempt: rows are gathered per target, counted, and framed.

This is the sending half of coordination by counting: `close` reports to every task downstream how
many tuples it was sent, zero included, and returns the edges to be put into the ack tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from coordinated_bolt.transport.edges import EdgeDigest
from coordinated_bolt.transport.frames import Frame, FrameKind
from state.attempt import TransactionAttempt
from state.codec import MAX_BYTES, CodecError, pack

FRAME_TUPLES = 8_192
"""A frame is sent once it holds this many tuples: large ones are cheap, yet no task keeps a large attempt twice."""

FRAME_BYTES_MAX = 64 * 1024 * 1024
"""A frame that gets larger is sent in parts: a receiver refuses what `MAX_BYTES` of the codec does not allow."""
TUPLE_BYTES_MAX = MAX_BYTES - 1024
"""What is left for one tuple in a frame that a receiver takes."""
EMITTED_LATE = "a tuple was emitted after finish_batch had returned; emit it before"
"""What is said of a tuple that comes when the counts were reported."""

Send = Callable[[Frame], None]


class RowOutbox(Protocol):
    """Takes the rows one task sends for one attempt, and knows how they travel."""

    @property
    def transferred(self) -> Mapping[int, int]:
        """Index of a stream -> tuples sent on it, to however many targets."""

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""

    def add_all(self, target: int, stream: int, rows: list[list[Any]]) -> None:
        """Sends many rows to a target."""

    def close(self) -> dict[int, int]:
        """Reports to every target; returns target -> edge. Nothing can be sent after that."""


NewOutbox = Callable[[TransactionAttempt], RowOutbox]


class _TargetBox:
    """Rows on their way to one target."""

    __slots__ = (
        "_sender",
        "_target",
        "attempt",
        "digest",
        "held",
        "rows",
        "send",
        "sequence",
        "stream",
        "stretches",
        "transferred",
    )

    def __init__(
        self, attempt: TransactionAttempt, sender: int, target: int, send: Send, transferred: dict[int, int]
    ) -> None:
        self.attempt, self._sender, self._target, self.send = attempt, sender, target, send
        self.transferred = transferred
        self.digest = EdgeDigest(attempt, sender, target)
        self.sequence = 0
        self.stream = -1
        self.rows: list[list[Any]] = []
        self.stretches: list[list[Any]] = []
        self.held = 0

    def open_stretch(self, stream: int) -> list[list[Any]]:
        """The rows of the current stretch, a new one if the stream has changed."""
        if stream != self.stream:
            self.stream = stream
            self.rows = []
            self.stretches.append([stream, self.rows])
        return self.rows

    def flush(self) -> None:
        """Sends what is held as one frame."""
        if self.held:
            self._send_rows(self.stretches, self.held)
            for stream, rows in self.stretches:
                self.transferred[stream] = self.transferred.get(stream, 0) + len(rows)
            self.stream, self.stretches, self.held = -1, [], 0

    def close(self) -> int:
        """Sends the rest and the COORD report; returns the edge."""
        self.flush()
        self._send(FrameKind.COORD, pack(self.digest.tuple_count))
        return self.digest.edge_id()

    def _send_rows(self, stretches: list[list[Any]], tuple_count: int) -> None:
        """Sends rows as one frame, or as several where one would be too large.

        Raises:
            CodecError: a single tuple is larger than any receiver takes.
        """
        payload = pack(stretches)
        if len(payload) > FRAME_BYTES_MAX and tuple_count > 1:
            for part in _halves(stretches, tuple_count // 2):
                self._send_rows(part, sum(len(rows) for _, rows in part))
            return
        check_tuple_size(payload)
        self.digest.add(self._send(FrameKind.REGULAR, payload), tuple_count)

    def _send(self, kind: FrameKind, payload: bytes) -> Frame:
        frame = Frame(self.attempt, self._sender, self.sequence, self._target, kind, payload)
        self.sequence += 1
        self.send(frame)
        return frame


class FrameOutbox:
    """All boxes of one attempt on one task.

    Args:
        attempt: the attempt.
        sender: task id of the sender.
        targets: every task downstream, each of which gets a report.
        send: takes each finished frame.
        frame_tuples: most tuples of a frame; 1 sends each tuple when it is emitted.

    Attributes:
        transferred: index of a stream -> tuples sent on it, to however many targets.
    """

    def __init__(
        self,
        attempt: TransactionAttempt,
        sender: int,
        targets: Iterable[int],
        send: Send,
        frame_tuples: int = FRAME_TUPLES,
    ) -> None:
        self._frame_tuples = frame_tuples
        self.transferred: dict[int, int] = {}
        self._boxes = {target: _TargetBox(attempt, sender, target, send, self.transferred) for target in targets}

    def add(self, target: int, stream: int, row: list[Any]) -> None:
        """Sends one row to a target."""
        box = self._boxes[target]
        box.open_stretch(stream).append(row)
        box.held += 1
        if box.held >= self._frame_tuples:
            box.flush()

    def add_all(self, target: int, stream: int, rows: list[list[Any]]) -> None:
        """Sends many rows to a target."""
        box = self._boxes[target]
        for start in range(0, len(rows), self._frame_tuples):
            part = rows[start : start + self._frame_tuples]
            box.open_stretch(stream).extend(part)
            box.held += len(part)
            if box.held >= self._frame_tuples:
                box.flush()

    def close(self) -> dict[int, int]:
        """Reports to every target; returns target -> edge id."""
        edges = {target: box.close() for target, box in self._boxes.items()}
        self._boxes = _Closed()
        return edges


def check_tuple_size(packed: bytes) -> None:
    """Refuses a packed tuple that no receiver would take; called where it is emitted (executor, driver).

    Raises:
        CodecError: it is too large.
    """
    if len(packed) > TUPLE_BYTES_MAX:
        raise CodecError(
            f"a tuple of {len(packed):,} bytes was emitted, and {TUPLE_BYTES_MAX:,} can travel: emit smaller ones, or "
            "put the content where the receiver can read it, and emit its name"
        )


def _halves(stretches: list[list[Any]], first_count: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """Stretches of rows, cut at fixed counts, so equal stretches are always cut alike."""
    first: list[list[Any]] = []
    second: list[list[Any]] = []
    for stream, rows in stretches:
        place = max(0, min(len(rows), first_count))
        first_count -= place
        if place:
            first.append([stream, rows[:place]])
        if place < len(rows):
            second.append([stream, rows[place:]])
    return first, second


class _Closed(dict[int, _TargetBox]):
    """In place of the boxes once they are closed: a tuple that comes later would be lost without a word."""

    def __missing__(self, target: int) -> _TargetBox:
        raise RuntimeError(EMITTED_LATE)
