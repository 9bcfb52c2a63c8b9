"""Where each transaction ended, kept until it is durable and others may be told."""

from __future__ import annotations

from collections.abc import Mapping

KEPT_MAX = 100_000
"""Transactions remembered; a window is far smaller."""


class CutRecord:
    """Txid -> where its partitions ended (driver; by the spout's coordinator and its committer on one thread)."""

    def __init__(self) -> None:
        self._after: dict[int, Mapping[int, int]] = {}

    def cut(self, txid: int, positions: Mapping[int, int]) -> None:
        """Notes where a transaction ends."""
        self._after[txid] = dict(positions)
        while len(self._after) > KEPT_MAX:
            del self._after[next(iter(self._after))]

    def durable(self, txid: int) -> Mapping[int, int] | None:
        """Where a durable transaction ended; forgets it and those below. None if another run cut it."""
        found = self._after.get(txid)
        self._after = {number: after for number, after in self._after.items() if number > txid}
        return found
