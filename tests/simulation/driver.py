"""One driver process of a simulation: a real run of the topology."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import make_plan
from coordinator.transactional.assembly import assembled
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from state.redis_client.connection import RedisConnection
from state.redis_topology.reader import READ_TIMEOUT_S, RedisReader
from state.redis_topology.store import RedisStore
from tests.simulation.fault_plan import FaultPlan
from tests.simulation.process import Ended, Process
from tests.simulation.sim_engine import SimEngine
from tests.simulation.sim_server import Caller, SimServer
from tests.simulation.timeline import Timeline
from tests.simulation.workload import TOPOLOGY_ID

WINDOWS = (1, 2, 4, 8)
SLOTS = (None, None, 1, 2)
"""How many tasks of Spark a run may have at a time; None gives each of its tasks one of its own."""
WAVES_IN_FLIGHT = 2
HISTORY = 5
"""How many transactions keep their records: few, so that most of them are forgotten again."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a run is started with; it may be another one at every start.

    Attributes:
        topology: what it runs.
        fingerprint: of its input.
        states: name -> value type of the states it declares.
        adopts: whether the user accepts another input.
        accepts_states: whether the user accepts that states have changed.
    """

    topology: Topology
    fingerprint: str
    states: dict[str, str]
    adopts: bool
    accepts_states: bool


class Driver(Process):
    """A run.

    Args:
        program: what it is started with.
        pickle: makes shipped specs.
        options: of the run, beside those that are drawn.
        replay: the quarantined batches or dead letters that it replays.

    Attributes:
        nonce: by which the server knows it.
        confirmed: (txid, attempt id) of what the server has told it that it holds.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        pickle: Callable[[str, Any], bytes],
        ended: Ended,
        options: Mapping[str, Any] | None = None,
        replay: RepublishChoice | LetterChoice | None = None,
    ) -> None:
        super().__init__(name, timeline, faults, ended)
        self.program = program
        self.confirmed: set[tuple[int, int]] = set()
        self._server, self._random, self._pickle = server, random, pickle
        self._options, self._replay = options or {}, replay
        self._stack = ExitStack()
        self._coordinator: Coordinator | None = None
        self.nonce = f"{random.getrandbits(128):032x}"
        self.later(self._start)

    @property
    def was_assembled(self) -> bool:
        """Whether it has taken the topology over."""
        return self._coordinator is not None

    def reader(self) -> RedisReader:
        """What one of its executors reads state with; an executor may outlive its driver."""
        caller = Caller(f"{self.name}'s executor", self.timeline.let_pass)
        connection = RedisConnection(
            self._server.client(caller),
            "sim",
            timeout_s=READ_TIMEOUT_S,
            clock=lambda: self.timeline.now_s,
            sleep=self.timeline.let_pass,
        )
        return RedisReader("redis://sim", TOPOLOGY_ID, nonce=self.nonce, connection=connection)

    def close(self) -> None:
        """Closes the run."""
        self._stack.close()

    def abandon(self) -> None:
        """Leaves it open."""
        self._stack.pop_all()

    def _start(self) -> None:
        random, timeline, program = self._random, self.timeline, self.program
        slots = Random(f"{self.nonce} slots").choice(SLOTS)  # apart: nothing else is drawn otherwise because of it
        plan = make_plan(program.topology, self._pickle).in_slots(slots)
        caller = Caller(self.name, self.wait)
        store = RedisStore(
            "redis://sim",
            TOPOLOGY_ID,
            client=self._server.client(caller),
            clock=lambda: timeline.now_s,
            sleep=self.wait,
            **self._server.connection_options(caller),
        )
        self.engine = SimEngine(plan, timeline, self.faults, random, nonce=self.nonce, wait=self.wait)
        options = RunOptions(
            max_spout_pending=random.choice(WINDOWS),
            commit_group_max=random.choice([1, 3, 8]),
            early_commit=random.random() < 0.5,
            adopt="unchecked" if program.adopts else False,
            accept_state_changes=program.accepts_states,
            durability=self._server.durability,
            history=HISTORY,
            **self._options,
        )
        store.check_server(options.asked_durability())
        self._coordinator = self._stack.enter_context(
            assembled(
                program.topology,
                plan,
                store,
                self.engine,
                options,
                nonce=self.nonce,
                new_generation=f"{random.getrandbits(128):032x}",
                clock=lambda: timeline.now_s,
                draw_bits=random.getrandbits,
                pause=self.wait,
                replay=self._replay,
            )
        )
        self.later(self._turn)

    def _turn(self) -> None:
        assert self._coordinator is not None
        self._check_bounds(self._coordinator)
        is_done = self._coordinator.turn()
        self._coordinator._machine.validate()  # its books have to agree
        if is_done:
            self.end(None)
        else:
            self.later(self._turn)

    def _check_bounds(self, coordinator: Coordinator) -> None:
        """What a run keeps is bounded by the largest window, whatever has gone wrong and however long it runs."""
        books, window = coordinator._machine._books, max(WINDOWS)
        kept = {
            "transactions": (len(books.transactions._records), window + 1),
            "waves": (len(books.waves._waves), window + WAVES_IN_FLIGHT),
            "waves of the engine": (len(self.engine.waves), window + WAVES_IN_FLIGHT),
            "metadata of the spout's coordinator": (len(books.metadata.coordinator), window + 1),
        }
        for what, (count, most) in kept.items():
            assert count <= most, f"{self.name} keeps {count} {what}, at most {most} for a window of {window}"
