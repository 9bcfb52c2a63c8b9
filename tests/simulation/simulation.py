"""One seed, one schedule: processes come, overlap and go, everything goes wrong, then nothing does.

While faults strike, the state has to be right after everything that changes it (safety); when they stop, a run
has to finish (liveness).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import blake2b
from random import Random
from typing import Any, TypeVar

from coordinator.testing.simulated.driver_process import WINDOWS
from coordinator.testing.simulated.process import Process
from coordinator.testing.simulated.sim_engine import Job
from coordinator.testing.simulated.timeline import Timeline
from state.attempt import TransactionAttempt
from state.errors import (
    FencedError,
    NotDurableError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    TransactionError,
    WaveCrashError,
)
from state.fault_points import installed
from state.records.transaction_history import RECEIPTS_KEPT
from tests.simulation.causes import Causes
from tests.simulation.driver import HISTORY, Driver
from tests.simulation.invariants import (
    History,
    Ledger,
    Program,
    Records,
    Takeovers,
    ViolatedError,
    check_metadata_bound,
    records_of,
    state_of,
)
from tests.simulation.operators import Drop
from tests.simulation.plain_simulation import PlainSimulation
from tests.simulation.scenario import CALLS_AT_MOST, PLAIN, Outcome, Scenario
from tests.simulation.sim_server import SimServer
from tests.simulation.workload import MARKS, TOPOLOGY_ID, Audit, World, topology
from tests.support.scenarios.transfers import PARTITIONS, transfer, weight

ServerT = TypeVar("ServerT", bound=SimServer)
BUILDS = (" acquire OK", " metadata OK", " commit OK", " barrier OK")
"""Calls that continue from what the server holds."""
RESTART_S = (0.0, 0.1, 5.0, 120.0)
DRIVERS_MAX = 4
EXPECTED_ENDS = (
    FencedError,
    NotDurableError,
    ReplayLimitError,
    StateRefusedError,
    StateUnreachableError,
    WaveCrashError,
)


@cache
def ledger(rows: int) -> Ledger:
    """What inputs of this size have to leave."""
    return Ledger(PARTITIONS, rows, transfer, weight)


class Simulation:
    """The world of one scenario."""

    _shard_count = 0
    _more_states: Mapping[str, str] = {}
    """Name -> value type of the states that its committer declares beyond the usual ones."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._random = Random(f"{scenario.seed} schedule")
        self.faults = scenario.plan()
        self.timeline = Timeline()
        self.server = self._new_server(SimServer)
        self.ends: Counter[str] = Counter()
        self._ledger, self._records, self._takeovers = ledger(scenario.rows), Records(), Takeovers()
        self._history = History()
        self._causes = Causes(self.faults.struck)
        self._told: set[TransactionAttempt] = set()
        self._drivers: dict[str, Driver] = {}
        self._drop: Drop | None = None
        self._needs_drop = False
        self._started = 0
        self._is_calm = self._is_done = False

    def _new_server(self, kind: Callable[..., ServerT], **more: Any) -> ServerT:
        """A server of this world; `more` is what its kind takes in addition."""
        random = Random(f"{self._scenario.seed} server")
        return kind(self.timeline, self.faults, random, changed=self._changed, answered=self._answered, **more)

    def play(self) -> None:
        """Lets everything happen.

        Raises:
            AssertionError: something does not hold.
        """
        rows = self._scenario.rows
        World.faults, World.known_rows = self.faults, self._random.randint(rows // 2, rows)
        World.durable = self._is_confirmed
        with installed(self._reached):
            self._supervise()
            self.timeline.run(until=lambda: self._is_done)
        if not self._is_done:
            raise ViolatedError("nothing is due any more, and no run is done")
        self._check_told()

    def _reached(self, point: str) -> None:
        """Whoever acts has reached a point of the code."""
        actor = self.timeline.actor
        if isinstance(actor, (Process, Job)):
            actor.reach(point)

    def _supervise(self) -> None:
        """Starts runs: one if there is none, at times a second one, or a drop."""
        if self.server.calls > self._scenario.calls:
            self._calm_down()
        alive = sum(driver.is_alive for driver in self._drivers.values())
        has_rival = alive < DRIVERS_MAX and self.faults.strikes("driver.has_a_rival")
        is_dropping = self._drop is not None and self._drop.is_alive
        if not is_dropping and (self.faults.strikes("operator.drops") or (alive == 0 and self._needs_drop)):
            self._start_drop()
        elif alive == 0 or has_rival:
            self._start_driver()
        delay_s = self._random.choice(RESTART_S) if alive else 0.1
        if not self._is_done:
            self.timeline.after(delay_s + 0.01, object(), self._supervise)

    def _calm_down(self) -> None:
        """From now on nothing goes wrong by chance, and the input does not grow any more."""
        self._is_calm = True
        if self._scenario.exactly is None or self.server.calls > CALLS_AT_MOST:
            self.faults.end()
            self.server.mend()
        World.known_rows = self._scenario.rows

    def _start_driver(self) -> None:
        self._started += 1
        rows = self._scenario.rows
        World.known_rows = max(World.known_rows, self._random.randint(rows // 2, rows))
        self._run(self._program())

    def _run(self, program: Program, **more: Any) -> None:
        """Starts a run of a program; `more` is what it takes in addition."""
        name = f"driver {self._started}"
        random = Random(f"{self._scenario.seed} {name}")
        driver = Driver(name, program, ended=self._ended, random=random, **self._around(), **more)
        self._drivers[driver.nonce] = driver
        self._causes.began(driver.name)

    def _around(self) -> dict[str, Any]:
        """What every process of this world is given."""
        return {"timeline": self.timeline, "faults": self.faults, "server": self.server}

    def _program(self) -> Program:
        """What the next run is started with: usually what the last one was."""
        scenario, faults = self._scenario, self.faults
        tasks = [scenario.tasks or self._random.choice([1, 1, 2, 3]) for _ in range(4)]
        is_other = faults.strikes("operator.changes_input")
        fingerprint = "other transfers" if is_other else "transfers"
        marks = "int" if scenario.marks else ""
        if scenario.marks and faults.strikes("operator.changes_states"):
            marks = faults.drawn("operator.changes_states").choice(["str", ""])
        asks = faults.strikes("operator.accepts_changes")
        return Program(
            topology(
                scenario.kind,
                reads=scenario.reads,
                tasks=tasks,
                fingerprint=fingerprint,
                marks=marks,
                shift=int(faults.strikes("operator.changes_code")),
                audit=self._audit(),
            ),
            fingerprint,
            {
                **dict.fromkeys(("balances", "seen", "weights"), "int"),
                **self._more_states,
                **({MARKS: marks} if marks else {}),
            },
            adopts=asks or self._is_calm,
            accepts_states=asks or self._is_calm,
        )

    def _audit(self) -> Audit | None:
        """What counts the rows; None for the usual committer."""
        return None

    def _start_drop(self) -> None:
        self._started += 1
        self._causes.drop_began()
        name = f"drop {self._started}"
        random = Random(f"{self._scenario.seed} {name}")
        self._drop = Drop(name, random=random, ended=self._dropped, **self._around())
        self._drop.shard_count = self._shard_count

    def _dropped(self, drop: Process, error: TransactionError | None) -> None:
        self._end_of("drop", error)
        if error is None:
            self._needs_drop = False

    def _ended(self, driver: Process, error: TransactionError | None) -> None:
        self._end_of("run", error)
        if error is not None and isinstance(driver, Driver):
            self._causes.check(driver.name, error, was_assembled=driver._coordinator is not None)
        self._needs_drop |= error is not None and any(said in str(error) for said in ("is being dropped", "TORN"))
        if error is None:
            self._check_sound("a run is done", is_known=self.server.is_known_damaged(driver.name))
            is_whole = self._ledger.is_whole(state_of(self.server.inner, TOPOLOGY_ID))
            self._is_done = self.server.calls > self._scenario.calls and is_whole

    def _end_of(self, what: str, error: TransactionError | None) -> None:
        self.ends[f"{what}: {'done' if error is None else type(error).__name__}"] += 1
        if error is not None and not isinstance(error, EXPECTED_ENDS):
            raise ViolatedError(f"a {what} ended by {type(error).__name__}: {error}") from error

    def _changed(self, how: str) -> None:
        """Something may have changed what the server holds."""
        server = self.server.inner
        if how.startswith("former "):
            if self.server.former is not None:
                self._ledger.check(state_of(self.server.former, TOPOLOGY_ID))
            return
        if how.startswith("server") or " drop_" in how:
            self._records.forget()
            self._history.forget()
        if how.endswith(" acquire OK") and not how.startswith("repeated "):  # such a call must not take over again
            self._causes.took_over(how.removesuffix(" acquire OK"))
        if self.server.is_damaged:
            if how.endswith(BUILDS):
                self._check_sound(how, is_known=True)
            return
        self._ledger.check(state_of(server, TOPOLOGY_ID))
        self._records.check(*records_of(server, TOPOLOGY_ID), RECEIPTS_KEPT)
        self._history.check(server, TOPOLOGY_ID, HISTORY)
        check_metadata_bound(server, TOPOLOGY_ID, window=max(WINDOWS), partitions=PARTITIONS)
        self._takeovers.check(
            server,
            TOPOLOGY_ID,
            is_write=how.endswith((" metadata OK", " commit OK")) and self._is_running(how),
            programs={nonce: driver.program for nonce, driver in self._drivers.items()},
        )

    def _is_running(self, how: str) -> bool:
        """Whether who wrote has started; before that, a run gives home back what shards have kept of earlier ones."""
        name = how.removeprefix("repeated ").rsplit(" ", 2)[0]
        return any(driver.name == name and driver._coordinator is not None for driver in self._drivers.values())

    def _check_sound(self, what: str, *, is_known: bool) -> None:
        """Checks that half of a lost write is not taken for state by one that could have noticed it."""
        if self.server.is_damaged and is_known:
            raise ViolatedError(f"{what}, and half of a write that was lost is applied to the state")

    def _answered(self, caller: str, receipts: dict[int, bytes]) -> None:
        """A process was told that these transactions are committed."""
        for driver in self._drivers.values():
            if driver.name == caller:
                driver.confirmed.update((txid, int(receipt.split()[0], 16)) for txid, receipt in receipts.items())

    def _is_confirmed(self, attempt: TransactionAttempt) -> bool:
        """Whether the run that acts has been told by the server that it holds the attempt."""
        self._told.add(attempt)
        driver = self.timeline.actor
        return isinstance(driver, Driver) and (attempt.txid, attempt.attempt_id) in driver.confirmed

    def _check_told(self) -> None:
        """Checks that a spout with a committer has heard of everything that the server holds."""
        _, receipts = records_of(self.server.inner, TOPOLOGY_ID)
        held = {TransactionAttempt(txid, int(receipt.split()[0], 16)) for txid, receipt in receipts.items()}
        if self._scenario.kind.startswith("told") and held - self._told:
            raise ViolatedError(f"the spout was never told of {', '.join(map(str, sorted(held - self._told)))}")


def simulate(scenario: Scenario) -> Outcome:
    """Plays a scenario and tells how it ended; never raises what it finds."""
    simulation = PlainSimulation(scenario) if scenario.kind == PLAIN else Simulation(scenario)
    violation = ""
    try:
        simulation.play()
    except Exception as error:  # noqa: BLE001 - whatever a run raises that is not one of its errors is a finding
        violation = f"{type(error).__name__}: {error}"
    timeline = simulation.timeline
    return Outcome(
        scenario,
        violation,
        blake2b("\n".join(timeline.story).encode(), digest_size=8).hexdigest(),
        tuple(simulation.faults.struck),
        simulation.ends,
        simulation.server.replies,
        simulation.faults.opportunities,
        tuple(timeline.story[-200:]) if violation else (),
    )
