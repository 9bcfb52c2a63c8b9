"""Computes how much of a finite input is committed, from how much of it is cut into transactions."""

from __future__ import annotations

from collections import deque

Cut = tuple[int, float]
"""(txid, part of the input that was cut when this txid was the last one)."""


class DonePart:
    """The part of the input that is committed; told of every event of a run.

    A spout says how much of its input is cut, and commits lag behind by up to a window. So this keeps how much was cut
    at the txids of that window, and looks up the committed one. Between two of them, and before the first one that a
    continued run meets, transactions count as equally large.
    """

    def __init__(self) -> None:
        self._cuts: deque[Cut] = deque([(0, 0.0)])  # bounded by the window: what is committed leaves
        self._last_txid = 0

    def update(self, last_txid: int, cut_txid: int, cut_part: float | None) -> None:
        """Takes the current figures.

        Args:
            last_txid: the last committed txid.
            cut_txid: the last txid that is cut, whether its attempt is in flight or has failed.
            cut_part: how much of the input it and all before it are, None if its size is unknown.
        """
        self._last_txid = last_txid
        if cut_part is not None and cut_txid > self._cuts[-1][0]:
            self._cuts.append((cut_txid, cut_part))
        while len(self._cuts) > 2 and self._cuts[1][0] <= last_txid:
            self._cuts.popleft()

    def fraction(self) -> float | None:
        """Returns the part, from 0 to 1; None while the size of the input is unknown."""
        if len(self._cuts) < 2:
            return None
        (txid, part), (next_txid, next_part) = self._cuts[0], self._cuts[1]
        through = min(1.0, (self._last_txid - txid) / (next_txid - txid))
        return min(1.0, max(0.0, part + (next_part - part) * through))
