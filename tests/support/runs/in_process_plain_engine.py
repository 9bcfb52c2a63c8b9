"""The real stages of plain topologies without Spark: a shuffle made of lists, and faults on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from types import SimpleNamespace
from typing import Any

from coordinator.engines.waves.stage_context import Addressed, FrameFault, StageContext
from coordinator.plain.plain_engine import PlainWave, WaveDrained
from coordinator.plain.plain_plan import PlainPlan
from coordinator.plain.spark.plain_stage import BoltStage, wave_drained
from coordinator.plain.spark.spark_plain_engine import emitted_parts
from coordinator.transactional.engine import WaveCrashed
from tests.support.runs.waves_at_once import WavesAtOnce

CrashFault = Callable[[PlainWave], str | None]
"""Given a wave that has run: None, or why it is to have crashed."""


class InProcessPlainEngine(WavesAtOnce):
    """Runs waves at once, in the caller's thread; frames are delivered in a random order.

    Args:
        plan: what to run.
        random: draws the order of delivery.
        frame_fault: as tests install it.
        crash_fault: what crashes; the wave's stages have run by then.

    Attributes:
        waves: every wave that was run.
        entry: what its stages are shipped with.
    """

    def __init__(
        self,
        plan: PlainPlan,
        random: Random,
        *,
        frame_fault: FrameFault | None = None,
        crash_fault: CrashFault = lambda wave: None,
    ) -> None:
        self._plan = plan
        shipped: Any = SimpleNamespace(value=plan)
        self.entry: StageContext[PlainPlan] = StageContext(shipped, frame_fault)
        self._random = random
        self._crash_fault = crash_fault
        self.waves: list[PlainWave] = []

    def run_wave(self, wave: PlainWave) -> WaveDrained | WaveCrashed:
        self.waves.append(wave)
        outputs: Iterable[Addressed] = [addressed for part in emitted_parts(self._plan, wave) for addressed in part]
        for index, stage in enumerate(self._plan.stages):
            records = self._shuffled(outputs)
            run = BoltStage(self.entry, wave.wave_id, index)
            outputs = [out for p in range(len(stage.tasks)) for out in run(p, records.get(p, []))]
        reason = self._crash_fault(wave)
        return wave_drained(outputs, wave) if reason is None else WaveCrashed(wave.wave_id.number, reason)

    def _shuffled(self, outputs: Iterable[Addressed]) -> dict[int, list[Addressed]]:
        records: dict[int, list[Addressed]] = {}
        for partition, packed in outputs:
            records.setdefault(partition, []).append((partition, packed))
        for each in records.values():
            self._random.shuffle(each)
        return records
