"""The trees of one wave of a plain topology: everything is told before anything is asked.

So there is nothing to decide along the way, and the order in which it is told does not matter. A tree is complete if
its edges cancel; what failed was not acked, and leaves its tree open. Pure: no clock, no transport.
"""

from __future__ import annotations

from collections.abc import Iterable


class WaveTrees:
    """An acker for a wave; see `Acker` for what an edge is."""

    def __init__(self) -> None:
        self._begun: dict[int, int] = {}
        self._acked: dict[int, int] = {}

    def begin(self, roots: Iterable[int], edges: Iterable[int]) -> None:
        """Notes that roots were emitted, each with the xor of its first edges; a second time, it is ignored."""
        begun = self._begun
        for root, edge in zip(roots, edges, strict=True):
            begun.setdefault(root, edge)

    def ack(self, roots: Iterable[int], edges: Iterable[int]) -> None:
        """Notes what a task has received and sent in some trees, each the xor of its edges there."""
        acked = self._acked
        for root, edge in zip(roots, edges, strict=True):
            acked[root] = acked.get(root, 0) ^ edge

    def complete(self) -> list[int]:
        """Returns the roots of the trees that have begun and are complete, in the order in which they began."""
        acked = self._acked
        return [root for root, edges in self._begun.items() if acked.get(root, 0) == edges]
