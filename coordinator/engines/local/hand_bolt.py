"""A bolt that leaves everything to the test."""

from __future__ import annotations

from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.streams.plain_tuple import PlainTuple, TupleStatus
from coordinated_bolt.streams.tuples import Tuple


class HandBolt(BaseRichBolt):
    """Keeps its tuples; replaces the bolt of a component that a test handles by hand.

    Source: backtype.storm.testing.AckTracker and the hand-fed bolts of Storm's integration tests.
    """

    def __init__(self) -> None:
        self._received: list[PlainTuple] = []

    def execute(self, tup: Tuple) -> None:
        assert isinstance(tup, PlainTuple)
        self._received.append(tup)

    def waiting(self) -> list[PlainTuple]:
        """Returns the tuples neither acked nor failed, in the order of their arrival, and forgets the others."""
        self._received = [tup for tup in self._received if tup.status is TupleStatus.OPEN]
        return list(self._received)
