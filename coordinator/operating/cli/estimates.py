"""Estimates for a finite input: how much of it is committed, and how long the rest takes. Pure."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

WINDOW_S = 30.0
STEPS_MIN = 3
"""How often the part must grow before an estimate: the first waves are slow, because the engine is still cold."""
TIME_MIN_S = 4.0
PART_MIN = 0.01
TIME_MAX_S = 99 * 3600.0
Cut = tuple[int, float]
"""(txid, part of the input up to the end of this txid's batch)."""


class DonePart:
    """The part of the input that is committed; updated with every event of a run.

    A spout reports the part of its input that is cut, and commits lag behind by up to a window. So this keeps the cut
    part at several txids of the window, and looks up the committed txid. Between two known txids, and before the first
    one of a continued run, transactions are assumed to be equally large.
    """

    def __init__(self) -> None:
        self._cuts: deque[Cut] = deque([(0, 0.0)])  # bounded by the window: committed cuts are removed
        self._last_txid = 0

    def update(self, last_txid: int, cut_txid: int, cut_part: float | None) -> None:
        """Takes the current figures.

        `cut_txid` is the last txid that is cut, whether its attempt is in flight or has failed; `cut_part` is the part
        of the input up to it, None if the size is unknown.
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


class TimeLeft:
    """The time until the input is committed, None while it would be a guess.

    An estimate needs the part to have grown three times since the first commit, by a hundredth, and for four seconds.
    It uses the rate of the last half minute. While nothing is committed, that rate falls and the estimate grows.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._growths: deque[tuple[float, float]] = deque()  # bounded by WINDOW_S

    def update(self, part: float | None) -> None:
        """Takes the part of the input that is committed, from 0 to 1; None while the input's size is unknown."""
        if part is None or (self._growths and part <= self._growths[-1][1]):
            return
        now_s = self._clock()
        self._growths.append((now_s, part))
        while len(self._growths) > STEPS_MIN + 1 and self._growths[1][0] < now_s - WINDOW_S:
            self._growths.popleft()

    def seconds(self) -> float | None:
        """Returns the time left in seconds; None while it would be a guess."""
        if len(self._growths) <= STEPS_MIN:
            return None
        (began_s, before), (_, part) = self._growths[0], self._growths[-1]
        passed_s = self._clock() - began_s
        if passed_s < TIME_MIN_S or part - before < PART_MIN:
            return None
        left_s = (1.0 - part) * passed_s / (part - before)
        return left_s if left_s <= TIME_MAX_S else None


def shown_time(seconds: float) -> str:
    """Returns a time as 0:07, 12:30 or 3:05:00."""
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
