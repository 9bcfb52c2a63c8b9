"""Every fault at each of its first opportunities, alone and in pairs, on small topologies.

What a swarm may miss for a long time, this tries for certain: the small runs have few opportunities, and each is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations

from coordinator.testing.simulated.fault_plan import Strike
from tests.simulation.fault_rates import RATES
from tests.simulation.scenario import PLAIN, Scenario
from tests.simulation.simulation import simulate

SMALL_ROWS = 9


def _small(name: str, kind: str, *, reads: bool, tasks: int) -> Scenario:
    none: frozenset[Strike] = frozenset()
    return Scenario(1, kind, reads, exactly=none, rows=SMALL_ROWS, calls=0, tasks=tasks, name=name)


SMALL = {
    scenario.name: scenario
    for scenario in (
        _small("one-task", "cut", reads=False, tasks=1),
        _small("two-tasks", "told partitioned", reads=False, tasks=2),
        _small("reading", "told opaque", reads=True, tasks=1),
        _small("plain", PLAIN, reads=False, tasks=1),
    )
}
"""Name -> a run that ends as soon as everything is read. The first three have two committers."""
FIRST_OF_SINGLES, FIRST_OF_PAIRS = 8, 2


@cache
def opportunities(name: str, first: int) -> tuple[Strike, ...]:
    """Each fault at each of its first opportunities, in a small run in which nothing else goes wrong."""
    found = simulate(SMALL[name]).opportunities
    return tuple(Strike(fault, k) for fault in RATES for k in range(min(first, found[fault])))


def singles(first: int = FIRST_OF_SINGLES) -> Iterator[Scenario]:
    """Every single fault."""
    for name, scenario in SMALL.items():
        for strike in opportunities(name, first):
            yield scenario.with_faults([strike])


def pairs(first: int = FIRST_OF_PAIRS) -> Iterator[Scenario]:
    """Every pair of faults."""
    for name, scenario in SMALL.items():
        for both in combinations(opportunities(name, first), 2):
            yield scenario.with_faults(both)
