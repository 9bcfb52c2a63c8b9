"""Makes a failing scenario small: takes out faults as long as it still fails the same way."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.testing.simulated.fault_plan import Strike
from coordinator.testing.simulated.shrinking import fewest
from tests.simulation.scenario import Outcome
from tests.simulation.simulation import simulate


def kind_of(outcome: Outcome) -> str:
    """What a violation is, whatever its figures are; empty if there is none."""
    words = outcome.violation.split("\n", maxsplit=1)[0]
    return "".join(c for c in words if c.isalpha() or c == " ")[:60]


def reduced(outcome: Outcome, play: Callable[..., Outcome] = simulate) -> Outcome:
    """The same violation with no fault that could be left out alone.

    Args:
        outcome: of a scenario that failed.
        play: plays a scenario.
    """
    wanted = kind_of(outcome)
    smallest = play(outcome.scenario.with_faults(outcome.struck))
    if kind_of(smallest) != wanted:
        return outcome

    def still_fails(faults: list[Strike]) -> bool:
        nonlocal smallest
        tried = play(outcome.scenario.with_faults(faults))
        if kind_of(tried) != wanted:
            return False
        smallest = tried
        return True

    fewest(smallest.struck, still_fails)
    return smallest
