"""From a plain topology's plan to the chain of stages that one wave goes through.

A wave is what the spouts, which live in the driver, have emitted since the last one. A stage holds the bolts
of one level, the length of the longest path from a spout; the ackers come last, when every bolt has said
what it has to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.planning.plain_plan import PlainPlan
from coordinator.planning.stage_chain import Stage, StageChain


@dataclass(frozen=True, slots=True)
class WavePlan:
    """Everything an engine ships once and every stage reads.

    Attributes:
        plain: the tasks.
        chain: bolts level by level, then the ackers if there are any.
    """

    plain: PlainPlan
    chain: StageChain

    @property
    def is_tracked(self) -> bool:
        """Whether there are ackers, which are the last stage then."""
        return bool(self.plain.acker_tasks)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the chain."""
        return self.chain.stages


def make_wave_plan(plain: PlainPlan) -> WavePlan:
    """Lays the tasks of a plan out in stages."""
    levels: dict[int, list[int]] = {}
    level_of = dict.fromkeys(plain.spout_tasks, 0)
    for task, wiring in plain.wirings.items():  # in flow order, so what is upstream has its level
        if task not in level_of:
            level_of[task] = 1 + max(level_of[above] for above in wiring.upstream)
            levels.setdefault(level_of[task], []).append(task)
    stages = [Stage(tuple(levels[level])) for level in sorted(levels)]
    if plain.acker_tasks:
        stages.append(Stage(plain.acker_tasks))
    return WavePlan(plain, StageChain(tuple(stages), driver_tasks=plain.spout_tasks))
