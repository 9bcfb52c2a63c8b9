"""The process of a run in a simulation: everything in it is real, except engine, clock and connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from coordinator.engines.waves.stage import Reading
from coordinator.server_choice import open_store
from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Caller, Ended, Process, SimulatedServer
from coordinator.testing.simulated.sim_engine import SimEngine
from coordinator.testing.simulated.timeline import Timeline
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.plan import make_plan
from coordinator.topology.planning.task_wirings import PickleSpec
from coordinator.transactional.assembly import assembled
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.options import RunOptions
from coordinator.transactional.start.republish_choice import LetterChoice, RepublishChoice
from coordinator.transactional.surroundings import RunEnvironment
from state.redis_client.connection import RedisConnection
from state.redis_owner.reader import READ_TIMEOUT_S, RedisReader

WINDOWS = (1, 2, 4, 8)
SLOTS = (None, None, 1, 2)
"""Numbers of slots that a run may have; with None every task is a Spark task."""


@dataclass(frozen=True, slots=True)
class SimulatedReading(Reading):
    """Opens the readers by which executors of a simulated run read state."""

    open: Callable[[], RedisReader]

    def reader(self, topology_id: str, shard_count: int) -> RedisReader:
        """See `Reading`."""
        return self.open()


class DriverProcess(Process):
    """A run of a transactional topology; window, groups and slots are drawn.

    Args:
        options: options of the run, in addition to the drawn ones.
        republish: the quarantined batches or dead letters that the run publishes.

    Attributes:
        nonce: identifies the run on the server.
    """

    def __init__(
        self,
        name: str,
        topology: Topology,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimulatedServer,
        random: Random,
        pickle_spec: PickleSpec,
        ended: Ended,
        options: Mapping[str, Any],
        republish: RepublishChoice | LetterChoice | None = None,
    ) -> None:
        super().__init__(name, timeline, faults, ended)
        self._topology, self._options, self._republish = topology, options, republish
        self._server, self._random, self._pickle_spec = server, random, pickle_spec
        self._stack = ExitStack()
        self._coordinator: Coordinator | None = None
        self.nonce = f"{random.getrandbits(128):032x}"
        self.later(self._start)

    def reader(self) -> RedisReader:
        """Returns a reader of state for one of its executors, which may outlive the driver."""
        caller = Caller(f"{self.name}'s executor", self.timeline.let_pass)
        connection = RedisConnection(
            self._server.client(caller),
            "sim",
            timeout_s=READ_TIMEOUT_S,
            clock=lambda: self.timeline.now_s,
            sleep=self.timeline.let_pass,
        )
        topology_id, shard_count = self._topology.topology_id, self._topology.shard_count
        return RedisReader("redis://sim", topology_id, nonce=self.nonce, shard_count=shard_count, connection=connection)

    def close(self) -> None:
        """Closes the run."""
        self._stack.close()

    def abandon(self) -> None:
        """Leaves the run open, as a killed process does."""
        self._stack.pop_all()

    def _start(self) -> None:
        random, timeline, topology = self._random, self.timeline, self._topology
        slots = Random(f"{self.nonce} slots").choice(SLOTS)  # a separate draw, so that no other draw changes
        plan = make_plan(topology, self._pickle_spec).in_slots(slots)
        caller = Caller(self.name, self.wait)
        store = open_store(
            "redis://sim",
            topology,
            client=self._server.client(caller),
            clock=lambda: timeline.now_s,
            sleep=self.wait,
            **self._server.connection_options(caller),
        )
        reading = SimulatedReading("", self.nonce, self.reader)
        self.engine = SimEngine(plan, timeline, self.faults, random, reading=reading, wait=self.wait)
        options = RunOptions(
            max_spout_pending=random.choice(WINDOWS),
            commit_group_max=random.choice([1, 3, 8]),
            early_commit=random.random() < 0.5,
            durability=self._server.durability,
            **self._options,
        )
        store.check_server(options.asked_durability(), expires=topology.expires, fields_expire=topology.fields_expire)
        self._coordinator = self._stack.enter_context(
            assembled(
                topology,
                plan,
                store,
                self.engine,
                options,
                around=RunEnvironment(
                    nonce=self.nonce,
                    new_generation=f"{random.getrandbits(128):032x}",
                    clock=lambda: timeline.now_s,
                    new_attempt_id=partial(random.getrandbits, 64),
                    pause=self.wait,
                ),
                choice=self._republish,
            )
        )
        self.later(self._turn)

    def _turn(self) -> None:
        assert self._coordinator is not None
        self._turning(self._coordinator)
        is_done = self._coordinator.turn()
        self._turned(self._coordinator)
        if is_done:
            self.end(None)
        else:
            self.later(self._turn)

    def _turning(self, coordinator: Coordinator) -> None:
        """Called before each turn."""

    def _turned(self, coordinator: Coordinator) -> None:
        """Called after each turn."""
