"""What operators do to the topology of a simulation, at any time, while runs start and end; it may be interrupted."""

from __future__ import annotations

from random import Random

from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Caller, Ended, Process
from coordinator.testing.simulated.timeline import Timeline
from state.keys import Keys
from state.redis_admin.drop import drop_topology
from state.redis_admin.topology import RedisTopology
from state.redis_client.connection import RedisConnection
from tests.simulation.sim_server import SimServer
from tests.simulation.workload import TOPOLOGY_ID

TIMEOUT_S = 60.0
WAITS_S = (0.0, 0.002, 0.01, 0.03, 0.1)
"""How long the operator looks at a batch before removing it."""


class Operator(Process):
    """Does one thing, and ends."""

    def __init__(
        self,
        name: str,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        ended: Ended,
    ) -> None:
        super().__init__(name, timeline, faults, ended)
        self._random, self._client = random, server.client(Caller(name, self.wait))
        self.later(self._work)

    def _work(self) -> None:
        self.act()
        self.end(None)

    def _now_s(self) -> float:
        return self.timeline.now_s

    def act(self) -> None:
        """Does it."""
        raise NotImplementedError


class Drop(Operator):
    """``txbatch drop``.

    Attributes:
        shard_count: of the topology.
    """

    shard_count = 0

    def act(self) -> None:
        nonce = f"{self._random.getrandbits(128):032x}"
        own = RedisConnection(self._client, "sim", timeout_s=TIMEOUT_S, clock=self._now_s, sleep=self.wait)
        drop_topology(own, Keys(TOPOLOGY_ID), nonce=nonce, shards=[own] * self.shard_count)


class Discard(Operator):
    """Looks at the quarantined batches, and removes one for good."""

    def act(self) -> None:
        topology = RedisTopology("redis://sim", TOPOLOGY_ID, client=self._client, clock=self._now_s, sleep=self.wait)
        found = topology.quarantined()
        self.wait(self._random.choice(WAITS_S))
        if found:
            topology.discard(self._random.choice(found))
