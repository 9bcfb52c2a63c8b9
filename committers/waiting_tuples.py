"""The tuples of a group, looked at before it is their turn: for states that prefetch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from coordinated_bolt.columns import column_of, from_wire
from coordinated_bolt.transport.blocks import Arrived, Inbox, PlacedFrame
from coordinated_bolt.wiring import TaskWiring
from state.attempt import TransactionAttempt
from state.codec import CodecError, unpack


class WaitingTuples:
    """The group's tuples at one commit task (executor); nothing is unpacked unless it is asked for.

    Args:
        wiring: the task.
        inbox: all that the task has read.
        attempts: the group.
    """

    def __init__(self, wiring: TaskWiring, inbox: Inbox, attempts: Sequence[TransactionAttempt]) -> None:
        self._wiring, self._inbox, self._attempts = wiring, inbox, attempts
        self._executed: Sequence[PlacedFrame] = ()

    def take(self, attempt: TransactionAttempt) -> Arrived:
        """Takes an attempt from the inbox; `values` still gives its tuples, until the next one is taken."""
        arrived = self._inbox.take(attempt)
        self._executed = arrived.frames
        return arrived

    def values(self, names: Sequence[str]) -> Iterator[Sequence[Any]]:
        """Gives the values of these tuple fields, frame by frame in the order of the group; implements `WaitingValues`.

        A frame that cannot be read is passed over: its attempt fails when it is executed.
        """
        for frames in chain([self._executed], map(self._inbox.waiting, self._attempts)):
            for frame in frames:
                yield from self._columns(frame, names)

    def _columns(self, frame: PlacedFrame, names: Sequence[str]) -> list[list[Any]]:
        try:
            streams = self._wiring.upstream[frame.sender].streams
            return [
                column_of(from_wire(rows), streams[stream].fields.index(name))
                for stream, rows in unpack(frame.payload)
                for name in names
                if name in streams[stream].fields
            ]
        except (CodecError, KeyError, IndexError, TypeError, ValueError):
            return []
