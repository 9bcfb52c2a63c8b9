"""What is played, and how it has ended: plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from coordinator.testing.simulated.fault_plan import FaultPlan, Strike
from tests.simulation.fault_rates import swarm_rates
from tests.simulation.workload import ROWS, SPOUTS

CALLS_WITH_FAULTS, PLAIN_CALLS_WITH_FAULTS = 250, 50
CALLS_AT_MOST = 1_000
PLAIN = "plain"
"""The kind of a scenario that runs a plain topology."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed stands for.

    Attributes:
        seed: of everything.
        kind: of spout, or `PLAIN`.
        reads: whether a committer reads state.
        exactly: the faults that strike; None for a swarm.
        rates: fault -> probability, instead of a swarm's; for tests that look for one kind of bug.
        rows: of each partition of the input.
        calls: for how many calls to the server things go wrong; 0 if the first run that reads everything ends it.
        tasks: how many of each component; 0 draws it for every run.
        marks: whether a third committer keeps a state that others may damage and that may be declared otherwise.
        name: of a small run, "" if its seed says everything.
    """

    seed: int
    kind: str
    reads: bool
    exactly: frozenset[Strike] | None = None
    rates: tuple[tuple[str, float], ...] | None = None
    rows: int = ROWS
    calls: int = CALLS_WITH_FAULTS
    tasks: int = 0
    marks: bool = False
    name: str = ""

    @classmethod
    def of(cls, seed: int, kind: str = "") -> Scenario:
        """The scenario of a seed, on a spout of this kind if one is given."""
        random = Random(f"{seed} scenario")
        drawn = random.choice([*sorted(SPOUTS), PLAIN])
        calls = PLAIN_CALLS_WITH_FAULTS if (kind or drawn) == PLAIN else CALLS_WITH_FAULTS
        return cls(seed, kind or drawn, random.random() < 0.5, marks=random.random() < 0.3, calls=calls)

    def with_faults(self, faults: Iterable[Strike]) -> Scenario:
        """The same schedule with exactly these faults."""
        return replace(self, exactly=frozenset(faults))

    def plan(self) -> FaultPlan:
        """What goes wrong."""
        if self.exactly is not None or self.rates is not None:
            return FaultPlan(self.seed, dict(self.rates or ()), self.exactly)
        return FaultPlan(self.seed, swarm_rates(self.seed))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a simulation has ended.

    Attributes:
        violation: the error that says what did not hold; empty if everything did.
        trace: digest of all that has happened.
        struck: the faults, in order.
        ends: how processes have ended -> how many.
        replies: (function, status) -> how often the server has answered it.
        opportunities: fault -> how often it might have struck.
        story: the last things that have happened, if something did not hold.
    """

    scenario: Scenario
    violation: str
    trace: str
    struck: tuple[Strike, ...]
    ends: Counter[str]
    replies: Counter[tuple[str, str]]
    opportunities: dict[str, int]
    story: tuple[str, ...]
