"""One driver process of a simulation: a real run of the topology, which may be killed or stopped anywhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any

from coordinator.building.topology import Topology
from coordinator.planning.plan import make_plan
from coordinator.transactional.assembly import assembled
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from state.errors import TransactionError
from state.redis_connection import RedisConnection
from state.redis_reader import READ_TIMEOUT_S, RedisReader
from state.redis_store import RedisStore
from tests.simulation.fault_plan import FaultPlan
from tests.simulation.sim_engine import SimEngine
from tests.simulation.sim_server import Caller, SimServer
from tests.simulation.timeline import Killed, Timeline
from tests.simulation.workload import TOPOLOGY_ID

STOPS_S = (2.0, 45.0, 400.0)
"""How long SIGSTOP lasts: shorter and longer than any timeout."""


class Driver:
    """A process.

    Args:
        name: for the trace.
        topology: what it runs.
        pickle: makes shipped specs.
        ended: called once, with the error it ended by, or None if it says it is done; not if it was killed.

    Attributes:
        is_alive: whether the process exists.
    """

    def __init__(
        self,
        name: str,
        topology: Topology,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        pickle: Callable[[str, Any], bytes],
        ended: Callable[[Driver, TransactionError | None], None],
    ) -> None:
        self.name, self.is_alive = name, True
        self._topology = topology
        self._timeline, self._faults, self._server, self._random = timeline, faults, server, random
        self._pickle, self._ended = pickle, ended
        self._stack = ExitStack()
        self._coordinator: Coordinator | None = None
        self.nonce = f"{random.getrandbits(128):032x}"
        timeline.note(f"{name} starts")
        timeline.after(0.0, self, self._start)

    @property
    def was_assembled(self) -> bool:
        """Whether it has taken the topology over."""
        return self._coordinator is not None

    def reader(self) -> RedisReader:
        """What one of its executors reads state with; an executor may outlive its driver."""
        caller = Caller(f"{self.name}'s executor", self._timeline.let_pass)
        connection = RedisConnection(
            self._server.client(caller),
            "sim",
            timeout_s=READ_TIMEOUT_S,
            clock=lambda: self._timeline.now_s,
            sleep=self._timeline.let_pass,
        )
        return RedisReader("redis://sim", TOPOLOGY_ID, nonce=self.nonce, connection=connection)

    def reach(self, point: str) -> None:
        """A point of the code, at which the process may be killed or stopped."""
        if self._faults.strikes(f"kill@{point}"):
            self._die()
        if self.is_alive and self._faults.strikes(f"stop@{point}"):
            self._stop(f"stop@{point}")
        if not self.is_alive:
            raise Killed

    def _wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Everything a process waits for, and where it may be killed or stopped."""
        faults = self._faults
        if faults.strikes("driver.is_killed"):
            self._die()
        if self.is_alive and faults.strikes("driver.is_stopped"):
            self._stop("driver.is_stopped")
        if self.is_alive:
            self._timeline.let_pass(seconds, until)
        if not self.is_alive:
            raise Killed

    def _die(self) -> None:
        self.is_alive = False
        self._timeline.note(f"{self.name} is killed")

    def _stop(self, fault: str) -> None:
        self._timeline.note(f"{self.name} is stopped")
        self._timeline.let_pass(self._faults.drawn(fault).choice(STOPS_S))
        self._timeline.note(f"{self.name} continues")

    def _start(self) -> None:
        random, timeline = self._random, self._timeline
        plan = make_plan(self._topology, self._pickle)
        caller = Caller(self.name, self._wait)
        client = self._server.client(caller)
        store = RedisStore("redis://sim", TOPOLOGY_ID, client=client, clock=lambda: timeline.now_s, sleep=self._wait)
        engine = SimEngine(plan, timeline, self._faults, random, nonce=self.nonce, wait=self._wait)
        options = RunOptions(
            max_spout_pending=random.choice([1, 2, 4, 8]),
            commit_group_max=random.choice([1, 3, 8]),
            early_commit=random.random() < 0.5,
        )

        def assemble() -> None:
            store.check_server()
            self._coordinator = self._stack.enter_context(
                assembled(
                    self._topology,
                    plan,
                    store,
                    engine,
                    options,
                    nonce=self.nonce,
                    new_generation=f"{random.getrandbits(128):032x}",
                    clock=lambda: timeline.now_s,
                    draw_bits=random.getrandbits,
                    pause=self._wait,
                )
            )
            timeline.after(0.0, self, self._turn)

        self._guarded(assemble)

    def _turn(self) -> None:
        def turn() -> None:
            assert self._coordinator is not None
            is_done = self._coordinator.turn()
            self._coordinator._machine.validate()  # its books have to agree
            if is_done:
                self._end(None)
            else:
                self._timeline.after(0.0, self, self._turn)

        self._guarded(turn)

    def _guarded(self, action: Callable[[], None]) -> None:
        if not self.is_alive:
            return
        try:
            action()
        except TransactionError as error:
            self._end(error)
        except Killed:
            self._stack.pop_all()  # what a process leaves to be closed, nobody closes

    def _end(self, error: TransactionError | None) -> None:
        self.is_alive = False
        self._timeline.note(f"{self.name} ends: {'done' if error is None else type(error).__name__}")
        try:
            self._stack.close()
        finally:
            self._ended(self, error)
