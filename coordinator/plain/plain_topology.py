"""A plain topology, built and checked: without transactions, at least once by acks and replays."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.topology.building.component import Component, ComponentKind
from coordinator.topology.building.topology import ComponentGraph

MAX_SPOUT_PENDING = 100_000
"""Default limit for the messages of a spout task in flight: as many as two waves of the usual size hold."""


@dataclass(frozen=True, slots=True, repr=False)
class PlainTopology(ComponentGraph):
    """A checked plain topology, ready to be planned and run.

    Without ackers nothing is tracked: a message is acked when it is emitted, even if its processing fails.

    Attributes:
        message_timeout_s: T; a message that is not processed fails between T and 2T seconds after it was
            emitted. None disables timeouts. On Spark a wave that takes longer than 2T is ended and fails.
        max_spout_pending: most messages that a spout task may have in flight.
    """

    message_timeout_s: float | None = 30.0
    max_spout_pending: int = MAX_SPOUT_PENDING

    @property
    def spouts(self) -> tuple[Component, ...]:
        """The components that are spouts."""
        return tuple(c for c in self.components if c.kind is ComponentKind.SPOUT)
