"""Takes faults out of a schedule that fails, until each that is left is needed for the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator.testing.simulated.fault_plan import Strike


def fewest(faults: Iterable[Strike], still_fails: Callable[[list[Strike]], bool]) -> list[Strike]:
    """Returns faults none of which can be left out alone, found by at most some hundred plays.

    `still_fails` plays with these faults and no others, and tells whether it fails the same way.
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
