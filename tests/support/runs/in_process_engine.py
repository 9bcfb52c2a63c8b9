"""The real stages without Spark: the same callables, a shuffle made of lists, and faults on the way."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from coordinator import RunOptions, Topology
from coordinator.engines.waves.stage import Reading, WaveInput
from coordinator.engines.waves.stage_context import FrameFault, StageContext
from coordinator.engines.waves.task_stages import Output, TaskStages
from coordinator.engines.waves.wave import Wave, at_once
from coordinator.spouts.batch import Batch
from coordinator.testing.simulated.executors import Executors
from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.assembly import assembled
from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.engine import EarlyCommit, Event, GroupExecuted
from coordinator.transactional.start.republish_choice import RepublishChoice
from coordinator.transactional.surroundings import RunEnvironment
from state.attempt import TransactionAttempt
from state.redis_client.connection import RedisConnection
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from tests.support.topologies.components import plan


class InProcessEngine:
    """Runs waves and groups at once, in the caller's thread; frames are delivered in a random order.

    Args:
        plan: what to run.
        random: draws the order of delivery.
        frame_fault: as tests install it.
        nonce: of the run, for its readers.
    """

    overlaps = True
    queues = False

    def __init__(self, plan: Plan, random: Random, frame_fault: FrameFault | None = None, *, nonce: str = "") -> None:
        self._reading = Reading("", nonce)
        self._plan = plan
        shipped: Any = SimpleNamespace(value=plan)
        self._entry: StageContext[Plan] = StageContext(shipped, frame_fault)
        self._executors = Executors(FaultPlan(None, {}), random)
        self._events: deque[Event] = deque()
        self._waves: dict[int, Wave[list[Output]]] = {}

    def stages(self) -> TaskStages:
        """What a wave runs on."""
        return TaskStages(self._plan, self._executors)

    def process(
        self, wave_id: int, batches: tuple[Batch, ...], stored: Mapping[str, Mapping[int, Any]], early: EarlyCommit
    ) -> None:
        given = WaveInput(wave_id, batches, {scope: dict(values) for scope, values in stored.items()})
        wave = self._waves[wave_id] = Wave(self._plan, self.stages(), given, self._entry, self._reading)
        self._events.append(at_once(wave.process(early)))

    def commit(self, wave_id: int, attempts: tuple[TransactionAttempt, ...], *, composed: bool) -> None:
        reports = at_once(self._waves[wave_id].commit(attempts, composed=composed))
        self._events.append(GroupExecuted(wave_id, attempts, tuple(reports)))

    def cancel(self, wave_id: int) -> None:
        """What runs has run already."""

    def release(self, wave_id: int) -> None:
        del self._waves[wave_id]

    def next_event(self, timeout_s: float) -> Event | None:
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        assert not self._waves, "every wave has been released"


def assembled_in_process(
    topology: Topology,
    store: RedisStore,
    random: Random,
    options: RunOptions,
    *,
    choice: RepublishChoice | None = None,
    **around: Any,
) -> AbstractContextManager[Coordinator]:
    """A run on a real store: delivery and attempt ids are drawn, and the clock stands still unless one is given."""
    made = plan(topology)
    engine = InProcessEngine(made, random, nonce=around["nonce"])
    given: dict[str, Any] = {"clock": lambda: 0.0, "new_attempt_id": partial(random.getrandbits, 64)} | around
    return assembled(topology, made, store, engine, options, around=RunEnvironment(**given), choice=choice)


def reader_on(client: Any, nonce: str, topology_id: str, shard_count: int, **time: Any) -> RedisReader:
    """Reads what committers ask for, by this client."""
    connection = RedisConnection(client, "memory", **({"timeout_s": 1.0} | time))
    return RedisReader("redis://memory", topology_id, nonce=nonce, shard_count=shard_count, connection=connection)
