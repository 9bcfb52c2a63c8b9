"""Tuples of plain topologies, with the trees they belong to, and the pending messages of a spout task."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from coordinated_bolt.streams.tuples import Tuple, TupleOrigin
from coordinated_bolt.transport.edges import DRIVER

SYSTEM_COMPONENT = "__system"
"""Component id of tuples emitted by the engine itself."""

TICK_STREAM = "__tick"
"""Stream of tick tuples."""

TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
"""Configuration key of a bolt or topology: the seconds between two tick tuples of a task."""

TICK_ORIGIN = TupleOrigin(
    attempt=None, source_component=SYSTEM_COMPONENT, source_task=DRIVER, stream_id=TICK_STREAM, fields=("rate_secs",)
)


class TupleStatus(Enum):
    """The status of a tuple at its receiving bolt."""

    OPEN = "neither acked nor failed"
    ACKED = "acked"
    FAILED = "failed"


_OPEN = TupleStatus.OPEN


class PlainTuple(Tuple):
    """A tuple that a task of a plain topology has received; only the framework makes it.

    Attributes:
        roots: the trees it belongs to, root -> id of its edge; empty if it is not tracked.
        ack_value: xor of the edges of all tuples anchored on it so far.
        status: whether it was acked or failed.
        received_ns: when its bolt received it, by the task's clock.

    Source: backtype.storm.tuple.TupleImpl with its MessageId.
    """

    __slots__ = ("ack_value", "received_ns", "roots", "status")

    def __init__(self, values: list[Any], origin: TupleOrigin, roots: Mapping[int, int]) -> None:
        self.values, self.origin = values, origin  # faster by a third than a call of the base class
        self.roots = roots
        self.ack_value = 0
        self.status = _OPEN
        self.received_ns = 0


Pending = tuple[Any, list[Any], str, int]
"""A `PendingMessage` as a plain tuple: creating a named tuple takes five times as long."""


class PendingMessage(NamedTuple):
    """A message that is neither acked nor failed yet.

    Attributes:
        message_id: the spout's message id.
        values: the values that the spout emitted.
        stream_id: the stream on which it was emitted.
        emitted_ns: when it was emitted, by the clock of the spout's task.
    """

    message_id: Any
    values: list[Any]
    stream_id: str
    emitted_ns: int


def is_tick(tup: Tuple) -> bool:
    """Returns whether a tuple is a tick, which only signals that the bolt's tick period has passed.

    Source: org.apache.storm.utils.TupleUtils.isTick.
    """
    return tup.source_component == SYSTEM_COMPONENT and tup.stream_id == TICK_STREAM
