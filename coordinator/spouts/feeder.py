"""A spout for tests that emits what it is fed."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from coordinated_bolt.components.spouts import BaseSpout
from coordinated_bolt.streams.declared import OutputFieldsDeclarer


class FeederSpout(BaseSpout):
    """Emits what `feed` was given, in order, one tuple a call; it never replays anything by itself.

    Args:
        fields: of its default stream.

    Source: backtype.storm.testing.FeederSpout.
    """

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._fed: deque[tuple[list[Any], Any]] = deque()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(self._fields)

    def feed(self, values: Sequence[Any], message_id: Any = None) -> None:
        """Queues values, to be emitted when the spout is next asked for a tuple; called where the live spout is."""
        self._fed.append((list(values), message_id))

    def next_tuple(self) -> None:
        if self._fed:
            values, message_id = self._fed.popleft()
            self.collector.emit(values, message_id)
