"""One seed, one schedule: drivers come, overlap and go, everything goes wrong, then nothing does.

While faults strike, the state has to be right after everything that changes it (safety); when they stop, a run
has to finish (liveness).
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any
from unittest import mock

from coordinator.spark import stage
from state.attempt import TransactionAttempt
from state.errors import (
    FencedError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    TransactionError,
    WaveCrashError,
)
from state.fault_points import installed
from state.redis_store import RECEIPTS_KEPT
from tests.simulation.causes import Causes
from tests.simulation.driver import Driver
from tests.simulation.fault_plan import FaultPlan, Strike
from tests.simulation.invariants import Ledger, Records, ViolatedError, records_of, state_of
from tests.simulation.sim_engine import Job
from tests.simulation.sim_server import SimServer
from tests.simulation.timeline import Timeline
from tests.simulation.workload import PARTITIONS, ROWS, SPOUTS, TOPOLOGY_ID, World, topology, transfer, weight

CALLS_WITH_FAULTS = 250
CALLS_AT_MOST = 1_000
RESTART_S = (0.0, 0.1, 5.0, 120.0)
DRIVERS_MAX = 4
EXPECTED_ENDS = (FencedError, ReplayLimitError, StateRefusedError, StateUnreachableError, WaveCrashError)


@cache
def ledger(rows: int) -> Ledger:
    """What inputs of this size have to leave."""
    return Ledger(PARTITIONS, rows, transfer, weight)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed stands for.

    Attributes:
        seed: of everything.
        kind: of spout.
        reads: whether a committer reads state.
        exactly: the faults that strike; None for a swarm.
        rates: fault -> probability, instead of a swarm's; for tests that look for one kind of bug.
        rows: of each partition of the input.
        calls: for how many calls to the server things go wrong; 0 if the first run that reads everything ends it.
        tasks: how many of each component; 0 draws it for every run.
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
    name: str = ""

    @classmethod
    def of(cls, seed: int, kind: str = "") -> Scenario:
        """The scenario of a seed, on a spout of this kind if one is given."""
        random = Random(f"{seed} scenario")
        drawn = random.choice(sorted(SPOUTS))
        return cls(seed, kind or drawn, random.random() < 0.5)

    def with_rates(self, **rates: float) -> Scenario:
        """The same with these faults alone, each as often; in their names, "__" stands for a dot."""
        return replace(self, rates=tuple((name.replace("__", "."), rate) for name, rate in rates.items()))

    def plan(self) -> FaultPlan:
        """What goes wrong."""
        if self.exactly is not None or self.rates is not None:
            return FaultPlan(self.seed, dict(self.rates or ()), self.exactly)
        return FaultPlan.swarm(self.seed)

    def with_faults(self, faults: Iterable[Strike]) -> Scenario:
        """The same schedule with exactly these faults."""
        return replace(self, exactly=frozenset(faults))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a simulation has ended.

    Attributes:
        violation: the error that says what did not hold; empty if everything did.
        trace: digest of all that has happened.
        struck: the faults, in order.
        ends: how drivers have ended -> how many.
        replies: (function, status) -> how often the server has answered it.
        opportunities: fault -> how often it might have struck.
        story: the last things that have happened.
    """

    scenario: Scenario
    violation: str
    trace: str
    struck: tuple[Strike, ...]
    ends: Counter[str]
    replies: Counter[tuple[str, str]]
    opportunities: dict[str, int]
    story: tuple[str, ...]


class Simulation:
    """The world of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._random = Random(f"{scenario.seed} schedule")
        self.faults = scenario.plan()
        self.timeline = Timeline()
        self.server = SimServer(self.timeline, self.faults, Random(f"{scenario.seed} server"), self._changed)
        self.ends: Counter[str] = Counter()
        self._ledger, self._records = ledger(scenario.rows), Records()
        self._causes = Causes(self.faults.struck)
        self._told: set[TransactionAttempt] = set()
        self._drivers: dict[str, Driver] = {}
        self._started = 0
        self._replacements = 0
        self._is_done = False

    def play(self) -> None:
        """Lets everything happen.

        Raises:
            AssertionError: something does not hold.
        """
        World.faults, World.known_rows = (
            self.faults,
            self._random.randint(self._scenario.rows // 2, self._scenario.rows),
        )
        World.durable = self._is_durable
        with mock.patch.object(stage, "_LazyReader", self._reader), installed(self._reached):
            self._supervise()
            self.timeline.run(until=lambda: self._is_done)
        if not self._is_done:
            raise ViolatedError("nothing is due any more, and no run is done")
        state = state_of(self.server.inner, TOPOLOGY_ID)
        if not self._ledger.is_whole(state):
            raise ViolatedError(f"a run says it is done, and the state lacks rows: {state['seen']}")
        self._check_told()

    def _reached(self, point: str) -> None:
        """Whoever acts has reached a point of the code."""
        actor = self.timeline.actor
        if isinstance(actor, (Driver, Job)):
            actor.reach(point)

    def _supervise(self) -> None:
        """Starts drivers: one if there is none, at times a second one."""
        if self.server.calls > self._scenario.calls:
            self._calm_down()
        alive = sum(driver.is_alive for driver in self._drivers.values())
        has_rival = alive < DRIVERS_MAX and self.faults.strikes("driver.has_a_rival")
        if alive == 0 or has_rival:
            self._start()
        delay_s = self._random.choice(RESTART_S) if alive else 0.1
        if not self._is_done:
            self.timeline.after(delay_s + 0.01, object(), self._supervise)

    def _calm_down(self) -> None:
        """From now on nothing goes wrong by chance, and the input does not grow any more."""
        if self._scenario.exactly is None or self.server.calls > CALLS_AT_MOST:
            self.faults.end()
        World.known_rows = self._scenario.rows

    def _start(self) -> None:
        self._started += 1
        World.known_rows = max(World.known_rows, self._random.randint(self._scenario.rows // 2, self._scenario.rows))
        driver = Driver(
            f"driver {self._started}",
            topology(self._scenario.kind, reads=self._scenario.reads, tasks=self._tasks()),
            timeline=self.timeline,
            faults=self.faults,
            server=self.server,
            random=Random(f"{self._scenario.seed} driver {self._started}"),
            pickle=lambda component_id, spec: pickle.dumps(spec),
            ended=self._ended,
        )
        self._drivers[driver.nonce] = driver
        self._causes.began(driver.nonce)

    def _tasks(self) -> list[int]:
        """How many tasks of which component; that may change from run to run."""
        return [self._scenario.tasks or self._random.choice([1, 1, 2, 3]) for _ in range(4)]

    def _ended(self, driver: Driver, error: TransactionError | None) -> None:
        if error is None:
            self.ends["done"] += 1
            self._is_done = self.server.calls > self._scenario.calls and self._ledger.is_whole(
                state_of(self.server.inner, TOPOLOGY_ID)
            )
            return
        self.ends[type(error).__name__] += 1
        if not isinstance(error, EXPECTED_ENDS):
            raise ViolatedError(f"a run ended by {type(error).__name__}: {error}") from error
        self._causes.check(driver.nonce, error, was_assembled=driver.was_assembled)

    def _changed(self, how: str) -> None:
        """Something may have changed what the server holds."""
        if how.startswith("server"):
            self._records.forget()
            self._replacements += 1
        self._ledger.check(state_of(self.server.inner, TOPOLOGY_ID))
        self._records.check(*records_of(self.server.inner, TOPOLOGY_ID), RECEIPTS_KEPT)

    def _is_durable(self, attempt: TransactionAttempt) -> bool:
        self._told.add(attempt)
        _, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        receipt = receipts.get(attempt.txid)
        return receipt is not None and int(receipt.split()[0], 16) == attempt.attempt_id

    def _check_told(self) -> None:
        """Checks that a spout with a committer has heard of everything that the server holds."""
        _, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        held = {TransactionAttempt(txid, int(receipt.split()[0], 16)) for txid, receipt in receipts.items()}
        if self._scenario.kind.startswith("told") and held - self._told:
            raise ViolatedError(f"the spout was never told of {', '.join(map(str, sorted(held - self._told)))}")

    def _reader(self, reading: Any, topology_id: str) -> Any:
        return self._drivers[reading.nonce].reader()


def simulate(scenario: Scenario) -> Outcome:
    """Plays a scenario and tells how it ended; never raises what it finds."""
    simulation = Simulation(scenario)
    violation = ""
    try:
        simulation.play()
    except Exception as error:  # noqa: BLE001 - whatever a run raises that is not one of its errors is a finding
        violation = f"{type(error).__name__}: {error}"
    timeline = simulation.timeline
    return Outcome(
        scenario,
        violation,
        timeline.trace,
        tuple(simulation.faults.struck),
        simulation.ends,
        simulation.server.replies,
        simulation.faults.opportunities,
        tuple(timeline.story[-200:]),
    )
