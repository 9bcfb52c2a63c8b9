"""Plans a transactional topology as a chain of stages: where each task runs, and how frames travel.

Tasks are numbered from 1 over all components; a task's number is its `task_id`. The level of a processing component is
the length of its longest path from the spout; levels run in stages 0..L. Stage L+1 holds the acker tasks and the first
level of the commit phase; deeper commit levels follow. A component is in the commit phase if it is a committer or has
one upstream. A chain of components counts as one (see `chaining`): its head has the partitions, and the tasks chained
to the head run in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinator.spouts.spout_kind import SpoutKind
from coordinator.topology.building.component import ComponentKind
from coordinator.topology.building.topology import Topology
from coordinator.topology.planning.chaining import (
    chained_wirings,
    chains_of,
    hand_overs,
    levels_of,
    tasks_by_level,
    unchained,
)
from coordinator.topology.planning.stages import Stage, StageChain, TaskPlan
from coordinator.topology.planning.task_wirings import PickleSpec, executors_of, make_wirings, number_tasks, workers
from state.commits.dead_letters import DEFAULT_LETTER_LIMITS, LetterLimits


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(TaskPlan):
    """The plan, which the engine ships once and every task reads.

    Attributes:
        chain: processing stages, then the stage of ackers and first committers, then deeper ones. Ackers carry no
            frames for others: the job of the commit phase does not run them.
        chains: the components of the processing phase.
        meeting_stage: index of the stage that holds the ackers.
        emitter_tasks: task ids of the spout.
        commit_tasks: task ids of the commit phase.
        has_independent_batches: whether a batch can be emitted before the one below it; False for partitioned spouts.
        component_order: component ids in flow order, the order of composed writes.
        executor_of: task id -> executor number, from 1; for engines that run several tasks on one executor.
        worker_of: task id -> worker, from 0; empty unless the plan was made for workers.
        letter_limits: how many dead letters the topology may keep.
        shard_count: how many shards hold its state.
    """

    meeting_stage: int
    emitter_tasks: tuple[int, ...]
    commit_tasks: frozenset[int]
    has_independent_batches: bool
    component_order: tuple[str, ...]
    executor_of: Mapping[int, int] = field(default_factory=dict)
    worker_of: Mapping[int, int] = field(default_factory=dict)
    letter_limits: LetterLimits = DEFAULT_LETTER_LIMITS
    shard_count: int = 1

    def __repr__(self) -> str:
        return f"Plan({self.topology_id!r}: {' | '.join(self.outline())})"

    def acker_of(self, txid: int) -> int:
        """Returns the acker task that decides attempts at `txid`."""
        return self.acker_tasks[txid % len(self.acker_tasks)]

    def outline(self) -> list[str]:
        """Returns a line for each stage: its components with their numbers of tasks; chained ones are joined by +."""
        chain_of = {chain[0]: chain for chain in self.chains}
        lines = []
        for stage in self.stages:
            heads = [self.wirings[t].component_id if t in self.wirings else ACKER_COMPONENT for t in stage.tasks]
            lines.append(", ".join(f"{'+'.join(chain_of.get(h, (h,)))} * {n}" for h, n in Counter(heads).items()))
        return lines

    def processing_tasks(self) -> dict[int, tuple[str, int]]:
        """Returns task id -> (component, task index), for every task that reports to an acker."""
        return {
            task: (wiring.component_id, wiring.task_index)
            for task, wiring in self.wirings.items()
            if task not in self.commit_tasks
        }

    def has_flat_commit_phase(self) -> bool:
        """Returns whether the whole commit phase is in the stage of the ackers, with nothing downstream."""
        return bool(self.commit_tasks) and self.meeting_stage == len(self.stages) - 1

    def is_one_partition(self) -> bool:
        """Returns whether a wave needs no shuffle for processing and early commit.

        Above a flat commit phase there is then only one chain in one partition, and neither the ackers nor a committer
        have tasks in several partitions, which could run at the same time.
        """
        if self.meeting_stage != 1 or len(self.stages) != 2 or len(self.stages[0].partitions) != 1:
            return False
        places = self.stages[1].place_of()
        component_of = {task: wiring.component_id for task, wiring in self.wirings.items()}
        spread = {(component_of.get(task, ACKER_COMPONENT), place) for task, place in places.items()}
        return len(spread) == len({component_id for component_id, _ in spread})

    def meeting_partitions(self, *, with_commit: bool) -> list[int]:
        """Returns the partitions of the meeting stage in the wave's job: ackers, and committers that run early."""
        return self.acker_partitions() + (self.commit_partitions() if with_commit else [])

    def commit_partitions(self) -> list[int]:
        """Returns the partitions of the meeting stage that belong to the commit phase."""
        partitions = self.stages[self.meeting_stage].partitions
        return [place for place, tasks in enumerate(partitions) if tasks[0] in self.commit_tasks]

    def acker_partitions(self) -> list[int]:
        """Returns the partitions of the meeting stage that hold ackers; they hold nothing else."""
        partitions = self.stages[self.meeting_stage].partitions
        return [place for place, tasks in enumerate(partitions) if tasks[0] in self.acker_tasks]


def make_plan(topology: Topology, pickle_spec: PickleSpec, *, worker_count: int = 0, is_chained: bool = True) -> Plan:
    """Plans a checked topology; raises the errors of `pickle_spec`.

    Args:
        topology: the topology to plan.
        pickle_spec: pickles the components.
        worker_count: number of workers that share the executors, so that local-or-shuffle groupings know their
            neighbours; 0 if placement is not known in advance, as on Spark.
        is_chained: whether components may be chained; False for an engine that runs each task by itself.
    """
    tasks_of = number_tasks(topology)
    acker_tasks = tasks_of[ACKER_COMPONENT]
    committing = _commit_phase(topology)
    chains = chains_of(topology, committing) if is_chained else unchained(topology, committing)
    executor_of = executors_of(topology, tasks_of)
    worker_of = workers(executor_of, worker_count)
    commit_tasks = frozenset(task for c in committing for task in tasks_of[c])
    wirings = {
        task: replace(
            wiring,
            commit_targets=frozenset() if task in commit_tasks else commit_tasks.intersection(wiring.targets),
            letter_limits=topology.letter_limits,
            shard_count=topology.shard_count,
        )
        for task, wiring in make_wirings(topology, tasks_of, pickle_spec, worker_of).items()
    }
    wirings = chained_wirings(wirings, hand_overs(topology, chains))
    levels = levels_of(topology, chains, committing)
    meeting_stage = max(level for component_id, level in levels.items() if component_id not in committing) + 1
    stage_of = {name: level + (meeting_stage if name in committing else 0) for name, level in levels.items()}
    tasks_at = tasks_by_level(chains, stage_of, tasks_of)
    tasks_at[meeting_stage] = [*acker_tasks, *tasks_at.get(meeting_stage, ())]
    stages = tuple(Stage(tuple(tasks_at[level])) for level in sorted(tasks_at))
    return Plan(
        topology_id=topology.topology_id,
        chain=StageChain(stages, idle_tasks=frozenset(acker_tasks)),
        meeting_stage=meeting_stage,
        wirings=wirings,
        acker_tasks=acker_tasks,
        emitter_tasks=tasks_of[topology.spout.component_id],
        commit_tasks=commit_tasks,
        has_independent_batches=not SpoutKind(topology.spout.spec).has_partitions,
        component_order=tuple(c.component_id for c in topology.components),
        chains=tuple(chains),
        executor_of=executor_of,
        worker_of=worker_of,
        letter_limits=topology.letter_limits,
        shard_count=topology.shard_count,
    )


def _commit_phase(topology: Topology) -> set[str]:
    committing: set[str] = set()
    for component in topology.components:  # in flow order: upstream components are decided first
        below = any(s.upstream_id in committing for s in component.subscriptions)
        if component.kind is ComponentKind.COMMITTER or below:
            committing.add(component.component_id)
    return committing
