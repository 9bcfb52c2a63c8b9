"""``txbatch drop`` in a simulation: it may be interrupted anywhere, while runs start and end."""

from __future__ import annotations

from random import Random

from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Caller, Ended, Process
from coordinator.testing.simulated.timeline import Timeline
from state.keys import Keys
from state.redis_admin.drop import drop_topology
from state.redis_client.connection import RedisConnection
from tests.simulation.sim_server import SimServer
from tests.simulation.workload import TOPOLOGY_ID

TIMEOUT_S = 60.0


class Drop(Process):
    """Drops the topology once."""

    def __init__(
        self,
        name: str,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        ended: Ended,
        shard_count: int = 0,
    ) -> None:
        super().__init__(name, timeline, faults, ended)
        self._shard_count = shard_count
        self._nonce = f"{random.getrandbits(128):032x}"
        self._connection = RedisConnection(
            server.client(Caller(name, self.wait)),
            "sim",
            timeout_s=TIMEOUT_S,
            clock=lambda: timeline.now_s,
            sleep=self.wait,
        )
        self.later(self._drop)

    def _drop(self) -> None:
        own = self._connection
        drop_topology(own, Keys(TOPOLOGY_ID), nonce=self._nonce, shards=[own] * self._shard_count)
        self.end(None)
