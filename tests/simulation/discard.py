"""An operator who removes a quarantined batch for good, at any time, while runs start, replay it and end."""

from __future__ import annotations

from random import Random

from coordinator.testing.simulated.fault_plan import FaultPlan
from coordinator.testing.simulated.process import Caller, Ended, Process
from coordinator.testing.simulated.timeline import Timeline
from state.redis_admin.topology import RedisTopology
from tests.simulation.sim_server import SimServer
from tests.simulation.workload import TOPOLOGY_ID

WAITS_S = (0.0, 0.002, 0.01, 0.03, 0.1)
"""How long the operator looks at a batch before removing it."""


class Discard(Process):
    """Looks at the quarantined batches, and removes one."""

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
        self._random = random
        self._topology = RedisTopology(
            "redis://sim",
            TOPOLOGY_ID,
            client=server.client(Caller(name, self.wait)),
            clock=lambda: timeline.now_s,
            sleep=self.wait,
        )
        self.later(self._discard)

    def _discard(self) -> None:
        found = self._topology.quarantined()
        self.wait(self._random.choice(WAITS_S))
        if found:
            self._topology.discard(self._random.choice(found))
        self.end(None)
