"""How many tuples the next wave of a plain topology may have.

Halved when one crashes, so that a culprit is alone in the end. Pure.
"""

from __future__ import annotations


class WaveSize:
    """The limit, and when to give up.

    After a crash the limit stays down until as many tuples as have crashed got through: it is likely that
    they come again.

    Args:
        largest: the limit when all is well.
        max_crashes: so many crashes of waves of one tuple in a row are enough.

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
        """A wave has come to its end."""
        self.crashes_alone = 0
        self._owed = max(0, self._owed - tuple_count)
        if not self._owed:
            self.limit = min(self._largest, self.limit * 2)

    def crashed(self, tuple_count: int) -> bool:
        """A wave has crashed; whether to try no more."""
        if self.limit == 1 or tuple_count == 1:
            self.crashes_alone += 1
        self._owed = max(self._owed, tuple_count)  # not the sum: those of a smaller wave were owed already
        self.limit = max(1, min(self.limit, tuple_count) // 2)
        return self.crashes_alone >= self._max_crashes
