"""Limits the number of tuples in the next wave of a plain topology. Pure.

The limit is halved when a wave crashes, until a tuple that causes crashes is alone.
"""

from __future__ import annotations


class PlainWaveSize:
    """Keeps the limit, and decides when to give up.

    After a crash the limit stays low until as many tuples have succeeded as had crashed, because the crashed ones are
    likely to be replayed.

    Args:
        largest: the limit while nothing crashes.
        max_crashes: give up after this many crashes in a row of waves of one tuple.

    Attributes:
        limit: most tuples of the next wave.
        crashes_alone: crashes of waves of one tuple in a row.
    """

    def __init__(self, largest: int, max_crashes: int) -> None:
        self._largest = largest
        self._max_crashes = max_crashes
        self._owed = 0
        self.limit = largest
        self.crashes_alone = 0

    def drained(self, tuple_count: int) -> None:
        """Counts a wave that has drained, and may raise the limit."""
        self.crashes_alone = 0
        self._owed = max(0, self._owed - tuple_count)
        if not self._owed:
            self.limit = min(self._largest, self.limit * 2)

    def crashed(self, tuple_count: int) -> bool:
        """Counts a wave that has crashed, and lowers the limit; returns whether to give up."""
        if self.limit == 1 or tuple_count == 1:
            self.crashes_alone += 1
        self._owed = max(self._owed, tuple_count)  # not the sum: a smaller wave repeats tuples that are owed already
        self.limit = max(1, min(self.limit, tuple_count) // 2)
        return self.crashes_alone >= self._max_crashes
