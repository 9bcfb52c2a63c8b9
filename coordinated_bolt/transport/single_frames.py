"""The carrier of an engine that moves one thing at a time: a frame, or the report of a count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from coordinated_bolt.transport.frames import Frame, FrameKind
from coordinated_bolt.transport.outbox import Sent
from state.attempt import TransactionAttempt
from state.codec import pack

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
