"""One driver process of a plain topology in a simulation, and the engine that runs its waves in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from types import SimpleNamespace
from typing import Any

from coordinator.engines.waves.stage_context import Addressed, StageContext
from coordinator.plain.plain_coordinator import PlainCoordinator
from coordinator.plain.plain_engine import PlainWave, WaveDrained
from coordinator.plain.plain_options import PlainRunOptions
from coordinator.plain.plain_plan import PlainPlan, make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.spark.plain_stage import BoltStage, wave_drained
from coordinator.plain.spark.spark_plain_engine import emitted_parts
from coordinator.testing.simulated.executors import Executors, TaskDiedError
from coordinator.testing.simulated.fault_plan import TASK_POINTS, FaultPlan
from coordinator.testing.simulated.process import Caller, Ended, Process
from coordinator.testing.simulated.timeline import Timeline
from coordinator.transactional.engine import WaveCrashed
from coordinator.watching.failure_cause import CrashKind
from state.codec import CodecError
from state.redis_admin.offset_records import TIMEOUT_S, RedisOffsetRecords
from state.redis_client.connection import RedisConnection
from tests.simulation.driver import pickled
from tests.simulation.plain_workload import PLAIN_ID
from tests.simulation.sim_server import SimServer
from tests.support.runs.waves_at_once import WavesAtOnce

STEP_S = 0.02
OVERDUE_S = 60.0


class PlainSimEngine(WavesAtOnce):
    """Runs waves, one at a time; every stage takes time, in which the driver may be killed.

    Args:
        plan: what to run.
        executors: run its tasks.
        wait: the driver's.
    """

    def __init__(self, plan: PlainPlan, executors: Executors, wait: Callable[[float], None]) -> None:
        self._plan, self._executors, self._wait = plan, executors, wait
        shipped: Any = SimpleNamespace(value=plan)
        self._entry: StageContext[PlainPlan] = StageContext(shipped)

    def run_wave(self, wave: PlainWave) -> WaveDrained | WaveCrashed:
        number, faults = wave.wave_id.number, self._executors.faults
        if faults.strikes("wave.hangs"):
            self._wait(OVERDUE_S)
            return WaveCrashed(number, "it took too long", CrashKind.OVERDUE)
        try:
            collected = self._collected(wave)
            if faults.strikes("wave.is_lost"):
                return WaveCrashed(number, "a worker died", CrashKind.LOST)
            return wave_drained(collected, wave)
        except TaskDiedError:
            return WaveCrashed(number, "a worker died again and again", CrashKind.LOST)
        except CodecError as error:
            return WaveCrashed(number, str(error))

    def _collected(self, wave: PlainWave) -> Iterable[Addressed]:
        run, plan = self._executors, self._plan
        outputs = emitted_parts(plan, wave)
        for index, level in enumerate(plan.stages):
            stage = BoltStage(self._entry, wave.wave_id, index)
            records = run.read(outputs)
            outputs = [run.run(stage, p, records.get(p, [])) for p in range(len(level.tasks))]
            self._wait(STEP_S)
        return [record for output in outputs for record in output]


class PlainDriver(Process):
    """A run of a plain topology.

    Attributes:
        records: what its spouts store offsets with.
    """

    def __init__(
        self,
        name: str,
        topology: PlainTopology,
        *,
        timeline: Timeline,
        faults: FaultPlan,
        server: SimServer,
        random: Random,
        ended: Ended,
    ) -> None:
        super().__init__(name, timeline, faults, ended)
        self._topology, self._random = topology, random
        self._executors = Executors(faults, random)
        client = server.client(Caller(name, self.wait))
        self.records = RedisOffsetRecords("redis://sim", PLAIN_ID, client=client)
        self.records._connection = RedisConnection(
            client, "sim", timeout_s=TIMEOUT_S, clock=lambda: timeline.now_s, sleep=self.wait
        )
        self.later(self._run)

    def reach(self, point: str) -> None:
        """Tasks run while the driver waits for its wave."""
        if point in TASK_POINTS:
            self._executors.reach(point)
        else:
            super().reach(point)

    def _run(self) -> None:
        random = self._random
        plan = make_plain_plan(self._topology, pickled)
        engine = PlainSimEngine(plan, self._executors, self.wait)
        engine.overlaps = random.random() < 0.5
        options = PlainRunOptions(wave_tuples_max=random.choice([1, 4, 50]), stop_when_idle=True, idle_rounds=2)
        PlainCoordinator(
            plan,
            engine,
            options,
            clock=lambda: self.timeline.now_s,
            sleep=self.wait,
            draw_bits=random.getrandbits,
        ).run()
        self.end(None)
