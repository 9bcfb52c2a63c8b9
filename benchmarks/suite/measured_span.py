"""The part of a run that is measured: from the first commit after the warm-up to the first one after the time is up.

Both ends lie on a commit, so neither a wave that is half done nor the pause between two commits is counted on one side
only. Pure: the clock is a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of a run.

    Attributes:
        at_s: on the run's clock.
        transactions: committed so far.
        tuples: in them.
    """

    at_s: float
    transactions: int
    tuples: int


class MeasuredSpan:
    """Finds the two ends while a run goes.

    Args:
        warm_up_s: time before the measurement, from the first call.
        seconds: shortest time to measure.
    """

    def __init__(self, warm_up_s: float, seconds: float) -> None:
        self._warm_up_s, self._seconds = warm_up_s, seconds
        self._started_s: float | None = None
        self._committed = 0
        self.begin: Mark | None = None
        self.end: Mark | None = None

    def note(self, now_s: float, transactions: int, tuples: int) -> bool:
        """Takes note of the run's progress; called as often as the run likes.

        Returns:
            True if this call has set one of the two ends.
        """
        if self._started_s is None:
            self._started_s = now_s
        if transactions == self._committed or self.end is not None:
            return False
        self._committed = transactions
        if self.begin is None:
            if now_s < self._started_s + self._warm_up_s:
                return False
            self.begin = Mark(now_s, transactions, tuples)
            return True
        if now_s < self.begin.at_s + self._seconds:
            return False
        self.end = Mark(now_s, transactions, tuples)
        return True

    def ends(self) -> tuple[Mark, Mark]:
        """Returns both ends.

        Raises:
            ValueError: the run ended before its time.
        """
        if self.begin is None or self.end is None:
            raise ValueError(
                f"the run ended after {self._committed} transactions, before there was anything to measure; "
                "give it more input, or measure for fewer seconds"
            )
        return self.begin, self.end
