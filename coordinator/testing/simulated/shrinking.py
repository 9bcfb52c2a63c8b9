"""Removes faults from a failing schedule, until each remaining fault is needed for the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.testing.simulated.fault_plan import Strike


def fewest(faults: Iterable[Strike], still_fails: Callable[[list[Strike]], bool]) -> list[Strike]:
    """Returns a set of faults from which no single one can be removed, found by at most some hundred plays.

    `still_fails` plays with exactly the given faults, and returns whether the play fails in the same way.
    """
    left = sorted(faults)
    size = max(1, len(left) // 2)
    while left:
        place, count = 0, len(left)
        while place < len(left):
            fewer = left[:place] + left[place + size :]
            if still_fails(fewer):
                left = fewer
            else:
                place += size
        if size == 1 and len(left) == count:  # otherwise a removal may have made another fault needless
            break
        size = max(1, size // 2)
    return left
