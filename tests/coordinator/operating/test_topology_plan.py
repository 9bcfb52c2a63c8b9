"""A plan as users see it: stages, chains, phases, and why there is one job or two."""

from __future__ import annotations

import pytest

from coordinated_bolt.streams.groupings import CustomGrouping
from coordinator.operating.topology_plan import plan
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state.errors import TopologyError
from tests.support.scenarios.transfer_spouts import PartitionedSpout
from tests.support.topologies.components import Commit, Count, Lines, Pass, build
from tests.support.topologies.example_topologies import EXAMPLES
from tests.support.topologies.plain_components import Identity


class Mail(Commit):
    external_effects = True


class ByLength(CustomGrouping):
    def choose_tasks(self, values):
        return [0]


def stages(topology):
    return [group.label for group in plan(topology).picture.groups]


def facts(topology):
    return " ".join(plan(topology).picture.facts)


def test_chains_share_a_stage_and_hand_tuples_over_in_memory():
    picture = plan(EXAMPLES["word_count"]()).picture
    assert [group.members for group in picture.groups] == [("lines", "count"), ("store",)]
    assert [edge.in_memory for edge in picture.edges] == [True, False]
    assert stages(EXAMPLES["word_count"]()) == [
        "stage 1 · processing · 1 Spark task · chain lines+count",
        "stage 2 · commit · 1 Spark task · 1 acker",
    ]


def wide(tasks):
    count, store = ("count", Pass(), ["lines"], tasks), ("store", Count(), ["count"], tasks)
    return build(count, store, spout_tasks=tasks)


def test_tasks_that_share_spark_tasks_are_told():
    topology = wide(24)
    assert [group.label for group in plan(topology, slots=8).picture.groups] == [
        "stage 1 · processing · 24 tasks in 8 Spark tasks · chain lines+count",
        "stage 2 · commit · 24 tasks in 8 Spark tasks · 1 acker",
    ]
    shared = "several of these share a Spark task"
    assert shared in facts(topology)
    assert shared not in " ".join(plan(topology, slots=8).picture.facts)
    assert shared not in facts(wide(1))


@pytest.mark.parametrize(("tasks", "warns"), [(8, False), (9, True)])
def test_a_plan_warns_of_several_times_as_many_tasks_as_slots(tasks, warns):
    (*_, last) = plan(wide(tasks), slots=2).picture.facts
    crowded = "Many tasks: lines has 9 tasks, count has 9 tasks and store has 9 tasks for 2 slots."
    assert last.startswith(crowded) is warns
    assert ("give a component at most 8, or more slots" in last) is warns
    assert "Many tasks" not in facts(wide(tasks)), "how many slots there will be is not known"


BELOW = build(("commit", Commit(), ["lines"]), ("pass", Pass(), ["commit"]), ("more", Pass(), ["commit"]))


@pytest.mark.parametrize(
    ("topology", "said"),
    [
        (build(("pass", Pass(), ["lines"], 2)), "there is no commit phase"),
        (build(("count", Count(), ["lines"], 2)), "One Spark job a wave for both phases"),
        (build(("count", Count(), ["lines"], 2)), "dealt in shares"),
        (build(("mail", Mail(), ["lines"])), "Two Spark jobs a wave: mail has external effects"),
        (BELOW, "because pass and more hear committers"),
        (build(("count", Count(), ["lines"]), spout=PartitionedSpout("")), "one partition: nothing is shuffled"),
    ],
)
def test_a_plan_says_how_many_jobs_a_wave_takes_why_and_how_rows_reach_them(topology, said):
    assert said in facts(topology)


def test_the_last_stage_is_of_the_commit_phase_if_there_is_one_and_several_tasks_need_a_shuffle():
    assert stages(build(("pass", Pass(), ["lines"], 2)))[-1] == "stage 3 · processing · 1 acker"
    assert stages(BELOW)[-1] == "stage 3 · commit · 2 Spark tasks"
    two_tasks = build(("count", Count(), ["lines"], 2), spout=PartitionedSpout(""))
    assert "nothing is shuffled" not in facts(two_tasks)


def test_a_plain_topology_has_its_spouts_in_the_driver():
    assert stages(EXAMPLES["plain_word_count"]())[:2] == [
        "driver · fill a wave while one runs",
        "stage 1 · 1 Spark task · chain split+count+append",
    ]


def test_chained_bolts_of_a_plain_topology_share_a_stage_unless_one_of_them_is_kept_out():
    def stages_with(*, is_chained):
        builder = TopologyBuilder("plain")
        builder.set_spout("feed", FeederSpout(("value",)))
        builder.set_bolt("first", Identity(), 2).shuffle_grouping("feed")
        second = builder.set_bolt("second", Identity(), 2).shuffle_grouping("first")
        if not is_chained:
            second.disable_chaining()
        return stages(builder.build())

    assert stages_with(is_chained=True)[1:] == ["stage 1 · 2 Spark tasks · chain first+second"]
    assert stages_with(is_chained=False)[1:] == ["stage 1 · 2 Spark tasks", "stage 2 · 2 Spark tasks"]


def test_an_untracked_plain_topology_is_said_to_be():
    builder = TopologyBuilder("untracked")
    builder.set_spout("lines", FeederSpout(["line"]))
    builder.set_acker_count(0)
    topology = EXAMPLES["plain_word_count"]()
    assert "Nothing is tracked" not in facts(topology)
    builder.set_bolt("sink", topology.component("append").spec).global_grouping("lines")
    assert "Nothing is tracked" in facts(builder.build())


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
