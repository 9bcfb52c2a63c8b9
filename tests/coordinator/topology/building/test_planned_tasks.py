"""Components without a parallelism: the planner chooses, says so, and nothing that is stored depends on it."""

from __future__ import annotations

import json

import pytest

from benchmarks.task_counts import with_tasks
from coordinator.operating.topology_plan import plan
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.topology.building.planned_tasks import planned, said, task_advice
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from coordinator.topology.building.topology_description import TopologyChange, changes, described, summary
from coordinator.transactional.options import RunOptions
from examples.dedupe import topology as dedupe
from examples.word_count import topology as word_count
from state.records.declared_states import with_shards
from tests.support.scenarios.transfer_spouts import PartitionedSpout
from tests.support.topologies.components import Commit, Lines, Pass
from tests.support.topologies.plain_components import Identity, fed_builder


def built(spout_tasks=None, bolt_tasks=None, tasks=None):
    builder = TransactionalTopologyBuilder("planned", "lines", Lines(), spout_tasks)
    bolt = builder.set_bolt("pass", Pass(), bolt_tasks).shuffle_grouping("lines")
    if tasks is not None:
        bolt.set_num_tasks(tasks)
    builder.set_committer_bolt("store", Commit()).global_grouping("pass")
    return builder.build()


def numbers(topology):
    return [(c.parallelism, c.task_count, c.is_planned) for c in topology.components]


def test_a_component_without_a_parallelism_has_one_task_and_a_number_stays_what_it_is():
    assert numbers(built()) == [(1, 1, True)] * 3
    assert numbers(built(3, 2)) == [(3, 3, False), (2, 2, False), (1, 1, True)]
    assert numbers(built(1, tasks=4)) == [(1, 1, False), (1, 4, False), (1, 1, True)]


def test_plain_components_have_one_task_and_chain():
    builder = fed_builder(parallelism=None)
    builder.set_bolt("first", Identity()).shuffle_grouping("spout")
    builder.set_bolt("second", Identity()).fields_grouping("first", ["value"])
    assert numbers(builder.build()) == [(1, 1, True)] * 3
    assert plan(builder.build()).picture.groups[1].label == "stage 1 · 1 Spark task · chain first+second"


def test_the_choice_is_said_for_all_for_some_and_not_at_all():
    assert (planned(built()), said(built())) == (
        "one task of each component",
        ": one task of each component, as planned",
    )
    assert planned(built(2)) == "one task of pass, store"
    assert said(with_tasks(word_count("*"), 2)) == ""
    assert plan(built()).picture.facts[0] == "The planner chose one task of each component, as no parallelism is given."
    assert "planner" not in " ".join(plan(with_tasks(word_count("*"), 2)).picture.facts)


def test_a_plan_names_what_one_task_does_not_spread_over_the_cores():
    partitioned = TransactionalTopologyBuilder("planned", "lines", PartitionedSpout(""))
    partitioned.set_bolt("pass", Pass()).shuffle_grouping("lines")
    assert task_advice(partitioned.build()) == "one task reads all partitions of lines"
    reading = dedupe(__file__, parallelism=None)
    assert task_advice(reading) == "add reads state"
    assert (
        plan(reading)
        .picture.facts[0]
        .endswith("Since add reads state, a parallelism of the spout and its bolts may be faster.")
    )
    assert task_advice(built()) == task_advice(with_tasks(partitioned.build(), 2)) == ""


def test_who_chose_a_number_is_stored_and_shown_but_is_no_change():
    chosen, given = described(built()), described(with_tasks(built(1, 1), 1))
    assert json.loads(chosen)["components"]["pass"]["planned"] is True
    assert "pass*1 by plan[bolt]" in summary(chosen)
    assert "pass*1[bolt]" in summary(given)
    assert "shards" not in summary(given)
    assert summary(with_shards(given, 16)).endswith(", on 16 shards")
    assert changes(chosen, given) == changes(given, chosen) == TopologyChange()
    assert changes(chosen, described(built(bolt_tasks=2))).said == ("component 'pass': tasks changed from 1 to 2",)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_a_run_of_planned_tasks_is_continued_with_any_number_and_the_other_way_round(tmp_path, tasks):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"word{number % 7} to be\n" for number in range(60)))
    topology = word_count(str(path), 5)
    for first, second in [(topology, with_tasks(topology, tasks)), (with_tasks(topology, tasks), topology)]:
        with LocalCluster(seed=tasks) as cluster:
            begun = cluster.submit(first, options=RunOptions(max_spout_pending=4))
            while not begun.statistics.committed:
                begun.tick()
            begun.close()
            run = cluster.submit(second)
            run.run_until_idle()
            assert run.is_done
            counts = run.state("counts")
        assert counts["to"] == counts["be"] == 60
        assert sum(counts.values()) == 180
