"""Takes out faults as long as what they lead to stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.engines.simulated.fault_plan import Strike


def fewest(faults: Iterable[Strike], still_fails: Callable[[list[Strike]], bool]) -> list[Strike]:
    """Returns faults of which none can be left out alone, found by at most some hundred plays.

    Args:
        faults: with which it fails.
        still_fails: plays with these faults and no others, and tells whether it fails the same way.
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
        if size == 1 and len(left) == count:  # else taking out one may have made another one needless
            break
        size = max(1, size // 2)
    return left
