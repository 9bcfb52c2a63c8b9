"""A plan as users see it: stages, chains, phases, and why there is one job or two."""

from __future__ import annotations

import pytest

from coordinated_bolt.streams.groupings import CustomGrouping
from coordinator.operating.topology_plan import plan
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.errors import TopologyError
from tests.simulation.workload import PartitionedSpout
from tests.support.approved import approved
from tests.support.topologies.components import Commit, Count, Lines, Pass, build
from tests.support.topologies.example_topologies import EXAMPLES
from tests.support.topologies.plain_components import Identity


class Mail(Commit):
    external_effects = True


class ByLength(CustomGrouping):
    def choose_tasks(self, values):
        return [0]


def wide(tasks):
    count, store = ("count", Pass(), ["lines"], tasks), ("store", Count(), ["count"], tasks)
    return build(count, store, spout_tasks=tasks)


def plain_of_two(*, is_chained):
    builder = TopologyBuilder("plain")
    builder.set_spout("feed", FeederSpout(("value",)))
    builder.set_bolt("first", Identity(), 2).shuffle_grouping("feed")
    second = builder.set_bolt("second", Identity(), 2).shuffle_grouping("first")
    if not is_chained:
        second.disable_chaining()
    return builder.build()


def untracked():
    builder = TopologyBuilder("untracked")
    builder.set_spout("lines", FeederSpout(["line"]))
    builder.set_acker_count(0)
    builder.set_bolt("sink", Identity()).global_grouping("lines")
    return builder.build()


PLANS = {
    "chains share a stage and hand tuples over in memory": plan(EXAMPLES["word_count"]()),
    "tasks that are more than slots share Spark tasks": plan(wide(24), slots=8),
    "several tasks, and nobody knows how many slots": plan(wide(24)),
    "no commit phase": plan(build(("pass", Pass(), ["lines"], 2))),
    "one job for both phases": plan(build(("count", Count(), ["lines"], 2))),
    "two jobs, because of external effects": plan(build(("mail", Mail(), ["lines"]))),
    "two jobs, because bolts hear committers": plan(
        build(("commit", Commit(), ["lines"]), ("pass", Pass(), ["commit"]), ("more", Pass(), ["commit"]))
    ),
    "nothing is shuffled": plan(build(("count", Count(), ["lines"]), spout=PartitionedSpout(""))),
    "partitions for several tasks": plan(build(("count", Count(), ["lines"], 2), spout=PartitionedSpout(""))),
    "a plain topology": plan(EXAMPLES["plain_word_count"]()),
    "plain and chained": plan(plain_of_two(is_chained=True)),
    "plain and not chained": plan(plain_of_two(is_chained=False)),
    "plain and untracked": plan(untracked()),
}


def test_a_plan_shows_stages_chains_and_phases_and_why_there_is_one_job_or_two():
    approved("\n\n".join(f"== {name}\n{found.text()}" for name, found in PLANS.items()), "plans")


@pytest.mark.parametrize(("tasks", "warns"), [(8, False), (9, True)])
def test_a_plan_warns_of_several_times_as_many_tasks_as_slots(tasks, warns):
    (*_, last) = plan(wide(tasks), slots=2).picture.facts
    crowded = "Many tasks: lines has 9 tasks, count has 9 tasks and store has 9 tasks for 2 slots."
    assert last.startswith(crowded) is warns
    assert ("give a component at most 8, or more slots" in last) is warns
    assert "Many tasks" not in plan(wide(tasks)).text(), "how many slots there will be is not known"


def test_it_prints_as_text_is_plain_data_and_shows_the_repr_of_a_users_grouping():
    made = plan(EXAMPLES["word_count"]())
    assert repr(made) == made.text()
    told = made.to_dict()
    assert told["stages"][0]["members"] == ("lines", "count")
    assert told["components"][2]["states"][0]["key"] == "{word_count}:counts"
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    builder.set_bolt("count", Count(), parallelism=2).custom_grouping("lines", ByLength())
    assert [edge.grouping for edge in plan(builder.build()).picture.edges] == ["ByLength()"]


def test_what_is_no_topology_is_refused_and_so_are_no_slots():
    with pytest.raises(TopologyError, match="plan got 'word_count' of type str; give the result of a builder's build"):
        plan("word_count")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="slots is 0; give at least 1"):
        plan(EXAMPLES["word_count"](), slots=0)
