"""Shows how a run would execute a topology, without starting anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.topology.building.planned_tasks import planned, task_advice
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import described
from coordinator.topology.pictures.picture_maker import picture_of
from coordinator.topology.pictures.picture_texts import html_of, mermaid_of, text_of
from coordinator.topology.pictures.topology_picture import PicturedPlace, TopologyPicture
from coordinator.topology.planning.chaining import hand_overs
from coordinator.topology.planning.plan import Plan, make_plan
from coordinator.topology.planning.stages import Stage
from state.errors import TopologyError
from state.printable import counted

TASKS_OF_A_SLOT = 4
"""A plan warns if a component has more tasks per slot than this: they gain nothing, and each one costs time."""


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """How a run on Spark executes a topology: stages, chains, phases, groupings and states; made by `plan`.

    It prints as text; a notebook also shows a table of the states.

    Attributes:
        picture: the content of the plan, as plain values.
    """

    picture: TopologyPicture

    def text(self) -> str:
        """Returns the plan as text for a terminal."""
        return text_of(self.picture)

    def mermaid(self) -> str:
        """Returns the plan as a Mermaid flowchart."""
        return mermaid_of(self.picture)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as plain data, as ``txbatch plan --json`` prints it."""
        return self.picture.to_dict()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return html_of(self.picture)


def plan(topology: Topology | PlainTopology, *, slots: int | None = None) -> TopologyPlan:
    """Returns how a run on Spark would execute a topology; starts nothing, and calls no code of the components.

    Args:
        topology: the result of a builder's `build`.
        slots: most Spark tasks in a stage, as for a run; None shows one for each task. Plain topologies have no slots.

    Raises:
        TopologyError: the argument is not a topology, `slots` is below 1, or the period of a bolt's tick tuples is
            invalid.
    """
    if slots is not None and slots < 1:
        raise TopologyError(f"slots is {slots}; give at least 1, or None")
    match topology:
        case Topology():
            return TopologyPlan(_transactional(topology, slots))
        case PlainTopology():
            return TopologyPlan(_plain(topology))
    raise TopologyError(f"plan got {described(topology)}; give the result of a builder's build()")


def _transactional(topology: Topology, slots: int | None) -> TopologyPicture:
    made = make_plan(topology, _unshipped).in_slots(slots)
    picture = picture_of(topology, hand_overs(topology, made.chains))
    committing = {made.wirings[task].component_id for task in made.commit_tasks}
    facts = list(_facts(topology, made, committing))
    if slots is None and any(_partition_count(made, stage) > 1 for stage in made.stages):
        facts.insert(1, "Where Spark has fewer cores than a stage has tasks, several of these share a Spark task.")
    if slots is not None:
        facts += _crowded(topology, slots)
    return replace(picture, groups=tuple(_stages(made)), facts=(*_chosen(topology), *facts))


def _chosen(topology: Topology | PlainTopology) -> Iterator[str]:
    if chosen := planned(topology):
        why = task_advice(topology) if isinstance(topology, Topology) else ""
        more = f" Since {why}, a parallelism of the spout and its bolts may be faster." if why else ""
        yield f"The planner chose {chosen}, as no parallelism is given.{more}"


def _crowded(topology: Topology, slots: int) -> Iterator[str]:
    """Yields a warning if components have several times as many tasks as there are slots."""
    most = TASKS_OF_A_SLOT * slots
    crowded = [f"{c.component_id} has {c.task_count:,} tasks" for c in topology.components if c.task_count > most]
    if crowded:
        yield (
            f"Many tasks: {_listed(crowded)} for {counted(slots, 'slot')}. Tasks that share a slot run one after the "
            f"other, and each costs every transaction some time: give a component at most {most:,}, or more slots, and "
            "set skips_empty_batches in bolts that have nothing to do for an empty batch."
        )


def _stages(made: Plan) -> Iterator[PicturedPlace]:
    chain_of = {chain[0]: chain for chain in made.chains}
    for index, stage in enumerate(made.stages):
        heads = dict.fromkeys(made.wirings[task].component_id for task in stage.tasks if task in made.wirings)
        members = tuple(member for head in heads for member in chain_of.get(head, (head,)))
        ackers = len(made.acker_tasks) if index == made.meeting_stage else 0
        details = [_placed(len(stage.tasks) - ackers, _partition_count(made, stage))] if members else []
        details += [counted(ackers, "acker")] if ackers else []
        details += [f"chain {'+'.join(chain_of[head])}" for head in heads if len(chain_of.get(head, ())) > 1]
        is_commit = index > made.meeting_stage or (index == made.meeting_stage and bool(members))
        yield PicturedPlace(f"stage {index + 1}", "commit" if is_commit else "processing", members, tuple(details))


def _partition_count(made: Plan, stage: Stage) -> int:
    """Returns how many partitions of a stage hold tasks other than ackers."""
    return sum(tasks[0] not in made.acker_tasks for tasks in stage.partitions)


def _placed(task_count: int, partition_count: int) -> str:
    if task_count == partition_count:
        return counted(task_count, "Spark task")
    return f"{counted(task_count, 'task')} in {counted(partition_count, 'Spark task')}"


def _facts(topology: Topology, made: Plan, committing: set[str]) -> Iterator[str]:
    effects = [c.component_id for c in topology.components if c.has_external_effects]
    if not committing:
        yield "One Spark job a wave: there is no commit phase, because no component is a committer."
    elif effects:
        yield (
            f"Two Spark jobs a wave: {_listed(effects)} {'has' if len(effects) == 1 else 'have'} external effects, so "
            "the commit phase of a transaction runs only once everything before it is committed, one at a time."
        )
    elif not made.has_flat_commit_phase():
        deeper = [c for c in made.component_order if c in committing and _is_below(topology, c, committing)]
        yield (
            f"Two Spark jobs a wave: the commit phase has several stages, because {_listed(deeper)} "
            f"{'hears a committer' if len(deeper) == 1 else 'hear committers'}."
        )
    else:
        yield (
            "One Spark job a wave for both phases, as long as committers only write; from the first that reads state, "
            "the commit phase is a job of its own."
        )
    if made.has_independent_batches and not effects and (made.has_flat_commit_phase() or not committing):
        yield "A wave of many small batches is dealt in shares, one for each slot, and nothing is shuffled."
    elif made.is_one_partition():
        yield "The wave is one partition: nothing is shuffled."
    yield f"A wave has {topology.message_timeout_s:g} s for each phase before what hangs is ended."


def _is_below(topology: Topology, component_id: str, committing: set[str]) -> bool:
    return any(s.upstream_id in committing for s in topology.component(component_id).subscriptions)


def _plain(topology: PlainTopology) -> TopologyPicture:
    made = make_plain_plan(topology, _unshipped)
    spouts = tuple(spout.component_id for spout in topology.spouts)
    groups = [PicturedPlace("driver", "", spouts, ("fill a wave while one runs",))]
    for index, stage in enumerate(made.stages, start=1):
        wirings = made.wirings
        heads = dict.fromkeys(wirings[task].component_id for task in stage.tasks if task in wirings)
        chains = [chain for chain in made.chains if chain[0] in heads]
        members = tuple(member for chain in chains for member in chain)
        details = [counted(len(stage.tasks), "Spark task")]
        details += [f"chain {'+'.join(chain)}" for chain in chains if len(chain) > 1]
        groups.append(PicturedPlace(f"stage {index}", "", members, tuple(details)))
    facts = [
        *_chosen(topology),
        "One Spark job a wave: what the spouts have emitted goes through all stages, at least once; no state.",
    ]
    if not made.is_tracked:
        facts.append("Nothing is tracked: there is no acker, so a message is acked when it is emitted.")
    handed_over = hand_overs(topology, made.chains)
    return replace(picture_of(topology, handed_over), groups=tuple(groups), facts=tuple(facts))


def _listed(component_ids: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(component_ids[:-1]), component_ids[-1])))


def _unshipped(component_id: str, spec: Any) -> bytes:
    """Stands in for a pickler: a plan that is only shown ships nothing."""
    return b""
