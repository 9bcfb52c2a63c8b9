"""One seed, one schedule of a plain topology: what is acked was processed, and what is stored as done was acked.

Runs of a plain topology are not fenced from one another: two of them process everything twice. Nothing may be lost.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from coordinator.testing.simulated.process import Process
from coordinator.testing.simulated.timeline import Timeline
from state.errors import StateError, TransactionError, UserCodeError, WaveCrashError
from state.fault_points import installed
from tests.simulation.invariants import ViolatedError
from tests.simulation.plain_driver import PlainDriver
from tests.simulation.plain_workload import PARTITIONS, PLAIN_ID, ROWS, PlainWorld, plain_topology
from tests.simulation.scenario import CALLS_AT_MOST, Scenario
from tests.simulation.sim_server import SimServer

DRIVERS_MAX = 3
OFFSETS = f"{{{PLAIN_ID}}}:txbatch:offsets"


class PlainSimulation:
    """The world of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._random = Random(f"{scenario.seed} schedule")
        self.faults = scenario.plan()
        self.timeline = Timeline()
        self.server = SimServer(
            self.timeline,
            self.faults,
            Random(f"{scenario.seed} server"),
            changed=lambda how: None,
            answered=lambda caller, receipts: None,
        )
        self.ends: Counter[str] = Counter()
        self._drivers: list[PlainDriver] = []
        self._is_done = False

    def play(self) -> None:
        """Lets everything happen.

        Raises:
            AssertionError: something does not hold.
        """
        PlainWorld.reset(self.faults, lambda: self._acting().records)
        with installed(self._reached):
            self._supervise()
            self.timeline.run(until=lambda: self._is_done)
        if not self._is_done:
            raise ViolatedError("nothing is due any more, and no run is done")

    def _acting(self) -> PlainDriver:
        actor = self.timeline.actor
        assert isinstance(actor, PlainDriver)
        return actor

    def _reached(self, point: str) -> None:
        if isinstance(self.timeline.actor, Process):
            self.timeline.actor.reach(point)

    def _supervise(self) -> None:
        if self.server.calls > (CALLS_AT_MOST if self._scenario.exactly is not None else self._scenario.calls):
            self.faults.end()
        alive = sum(driver.is_alive for driver in self._drivers)
        if alive == 0 or (alive < DRIVERS_MAX and self.faults.strikes("driver.has_a_rival")):
            self._start()
        # also when all is done: a run that was stopped meanwhile may yet store where it was, and leave that to the next
        self.timeline.after(self._random.choice([0.11, 5.0]) if alive else 0.11, object(), self._supervise)

    def _start(self) -> None:
        name = f"driver {len(self._drivers) + 1}"
        self._drivers.append(
            PlainDriver(
                name,
                plain_topology([self._scenario.tasks or self._random.choice([1, 2]) for _ in range(4)]),
                timeline=self.timeline,
                faults=self.faults,
                server=self.server,
                random=Random(f"{self._scenario.seed} {name}"),
                ended=self._ended,
            )
        )

    def _ended(self, driver: Process, error: TransactionError | None) -> None:
        self.ends[f"plain run: {'done' if error is None else type(error).__name__}"] += 1
        if error is None:
            self._check_all_done()
            self._is_done = self.server.calls > self._scenario.calls and self._is_stored()
        elif not isinstance(error, (WaveCrashError, StateError)) and not _is_of_the_server(error):
            raise ViolatedError(f"a plain run ended by {type(error).__name__}: {error}") from error

    def _check_all_done(self) -> None:
        """A run that says its spouts have nothing more has lost nothing, and neither have those before it."""
        if PlainWorld.missing():
            raise ViolatedError(f"a plain run is done, and rows {PlainWorld.missing()} were never processed")

    def _is_stored(self) -> bool:
        """Whether the offsets are stored; a save that failed or was overtaken leaves that to the next run."""
        stored = self.server.inner.hash(OFFSETS)
        return all(int(stored.get(f"log:{partition}".encode(), 0)) == ROWS for partition in range(PARTITIONS))


def _is_of_the_server(error: TransactionError) -> bool:
    """Whether a spout could not read where it is."""
    return isinstance(error, UserCodeError) and any(
        f"State{how}Error" in str(error) for how in ("Refused", "Unreachable")
    )
