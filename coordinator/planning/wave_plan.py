"""Arranges the tasks of a plain topology in the chain of stages that each wave passes through.

A wave is what the spouts, which live in the driver, have emitted since the last one. A stage holds the bolts of one
level, which is the length of the longest path from a spout. A chain of bolts counts as one (see `chaining`): its head
has the partitions, and the bolts chained to it run there. The ackers are last, after every bolt has reported.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.planning.plain_plan import PlainPlan
from coordinator.planning.stage_chain import Stage, StageChain


@dataclass(frozen=True, slots=True)
class WavePlan:
    """Everything an engine ships once and every stage reads.

    Attributes:
        plain: the plan of the topology.
        chain: the bolts level by level, then the ackers if there are any.
    """

    plain: PlainPlan
    chain: StageChain

    @property
    def is_tracked(self) -> bool:
        """Whether there are ackers, which then form the last stage."""
        return bool(self.plain.acker_tasks)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of the chain."""
        return self.chain.stages

    def chained_to(self, head_task: int) -> tuple[int, ...]:
        """Returns the tasks that run after a task in its partition, in their order."""
        head = self.plain.wirings[head_task]
        chain = next((chain for chain in self.plain.chains if chain[0] == head.component_id), ())
        return tuple(head.tasks_of[component_id][head.task_index] for component_id in chain[1:])


def make_wave_plan(plain: PlainPlan) -> WavePlan:
    """Arranges the tasks of a plan in stages."""
    levels: dict[int, list[int]] = {}
    level_of = dict.fromkeys(plain.spout_tasks, 0)
    head_of = {component_id: chain[0] for chain in plain.chains for component_id in chain}
    for task, wiring in plain.wirings.items():  # in flow order: upstream tasks have their level already
        if task in level_of:
            continue
        head = head_of[wiring.component_id]
        if head != wiring.component_id:
            level_of[task] = level_of[wiring.tasks_of[head][wiring.task_index]]
        else:
            level_of[task] = 1 + max(level_of[above] for above in wiring.upstream)
            levels.setdefault(level_of[task], []).append(task)
    stages = [Stage(tuple(levels[level])) for level in sorted(levels)]
    if plain.acker_tasks:
        stages.append(Stage(plain.acker_tasks))
    return WavePlan(plain, StageChain(tuple(stages), driver_tasks=plain.spout_tasks))
