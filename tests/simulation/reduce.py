"""Makes a failing scenario small: takes out faults as long as it still fails the same way."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.fault_plan import Strike
from tests.simulation.scenario import Outcome
from tests.simulation.simulation import simulate


def kind_of(outcome: Outcome) -> str:
    """What a violation is, whatever its figures are; empty if there is none."""
    words = outcome.violation.split("\n", maxsplit=1)[0]
    return "".join(c for c in words if c.isalpha() or c == " ")[:60]


def reduced(outcome: Outcome, play: Callable[..., Outcome] = simulate) -> Outcome:
    """The same violation with no fault that could be left out alone, in at most some hundred plays.

    Args:
        outcome: of a scenario that failed.
        play: plays a scenario.
    """
    wanted = kind_of(outcome)
    smallest = play(outcome.scenario.with_faults(outcome.struck))
    if kind_of(smallest) != wanted:
        return outcome
    faults: list[Strike] = sorted(smallest.struck)
    size = max(1, len(faults) // 2)
    while faults:
        place, count = 0, len(faults)
        while place < len(faults):
            fewer = faults[:place] + faults[place + size :]
            tried = play(outcome.scenario.with_faults(fewer))
            if kind_of(tried) == wanted:
                faults, smallest = fewer, tried
            else:
                place += size
        if size == 1 and len(faults) == count:  # else taking out one may have made another one needless
            break
        size = max(1, size // 2)
    return smallest
