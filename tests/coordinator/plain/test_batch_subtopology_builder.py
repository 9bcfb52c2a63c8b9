"""What a sub-topology may look like, how it is wired, and what is refused with the reason."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinated_bolt.wiring import Coordination
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.testing.cluster.cluster import LocalCluster
from state import HashState
from state.errors import TopologyError
from tests.support.topologies.components import Commit, Pass
from tests.support.topologies.plain_components import AnchorTwice, Identity, fed_builder
from tests.support.topologies.plain_jobs import planned


class WithState(Pass):
    counts = HashState("counts", value=int)


def subtopology(master_tasks: int = 3) -> BatchSubtopologyBuilder:
    batches = BatchSubtopologyBuilder("master", Pass(), master_tasks)
    batches.master_declarer.shuffle_grouping("spout")
    return batches


def with_bolt() -> BatchSubtopologyBuilder:
    batches = subtopology()
    batches.set_bolt("bolt", Pass()).shuffle_grouping("master")
    return batches


def coordinations(builder: TopologyBuilder):
    """Component -> how its tasks are coordinated, and the tasks of each component."""
    plan = planned(builder.build())
    return {wiring.component_id: wiring.coordination for wiring in plan.wirings.values()}, plan.wirings[1].tasks_of


def test_who_is_inside_and_how_many_report():
    builder = fed_builder()
    batches = subtopology()
    batches.set_bolt("middle", Identity(), 2).shuffle_grouping("master")
    batches.set_bolt("last", Pass(), 2).shuffle_grouping("middle").fields_grouping("master", ["line"])
    batches.extend_topology(builder)
    builder.set_bolt("plain", Identity()).shuffle_grouping("middle").shuffle_grouping("spout")
    found, tasks_of = coordinations(builder)
    single, every = SourceArgs.SINGLE, SourceArgs.ALL
    assert found == {
        "spout": None,
        "master": Coordination({}, tasks_of["middle"] + tasks_of["last"]),
        "middle": Coordination({"master": single}, tasks_of["last"]),
        "last": Coordination({"middle": every, "master": single}, ()),
        "plain": None,
    }
    targets = planned(builder.build()).wirings[tasks_of["middle"][0]].targets
    assert set(targets) == {*tasks_of["last"], *tasks_of["plain"]}


def test_two_sub_topologies_are_outside_of_each_other():
    builder = fed_builder()
    second = BatchSubtopologyBuilder("second", Pass())
    second.master_declarer.shuffle_grouping("bolt")
    second.set_bolt("behind", Pass()).shuffle_grouping("second")
    second.extend_topology(builder)
    with_bolt().extend_topology(builder)
    found, tasks_of = coordinations(builder)
    assert found["bolt"] == Coordination({"master": SourceArgs.SINGLE}, ())
    assert found["second"] == Coordination({}, tasks_of["behind"])


def test_options_of_components_inside_are_kept():
    builder = fed_builder()
    batches = subtopology()
    batches.master_declarer.set_num_tasks(2).add_configuration("key", "master")
    batches.set_bolt("bolt", Pass()).shuffle_grouping("master").set_num_tasks(4).add_configuration("key", "bolt")
    batches.extend_topology(builder)
    plan = planned(builder.build({"key": "topology"}))
    found = Counter((wiring.component_id, wiring.conf["key"]) for wiring in plan.wirings.values())
    assert found == {("spout", "topology"): 1, ("master", "master"): 2, ("bolt", "bolt"): 4}


def test_tick_tuples_are_for_bolts_outside():
    builder = fed_builder()
    with_bolt().extend_topology(builder)
    builder.set_bolt("plain", Identity()).shuffle_grouping("bolt")
    plan = planned(builder.build({TICK_TUPLE_FREQ_SECS: 1.0}))  # for whoever can receive them
    [task] = plan.tick_periods_s
    assert plan.wirings[task].component_id == "plain"


# refusals

COMMITTER = "component '{}' is a committer, .* finish in any order; for transactions, use a Tr"
NO_BATCHES = "component '{}' is .*; give an instance of IBatchBolt or IBasicBolt"


@pytest.mark.parametrize(
    ("bolt", "tasks", "message"),
    [
        (Commit(), 1, COMMITTER),
        *((bolt, 1, NO_BATCHES) for bolt in (AnchorTwice(), Pass, FeederSpout(["value"]), None)),
        *((Pass(), tasks, "parallelism of component '{}' is") for tasks in (0, -1, True, 1.5, "2")),
    ],
)
def test_what_cannot_process_batches_so_is_refused_as_a_master_and_as_a_bolt(bolt, tasks, message):
    with pytest.raises(TopologyError, match=message.format("master")):
        BatchSubtopologyBuilder("master", bolt, tasks)
    with pytest.raises(TopologyError, match=message.format("bolt")):
        subtopology().set_bolt("bolt", bolt, tasks)


@pytest.mark.parametrize("component_id", ["bolt", "master"])
def test_ids_that_are_used_twice_are_refused(component_id):
    with pytest.raises(TopologyError, match=f"component id '{component_id}' is used twice"):
        with_bolt().set_bolt(component_id, Pass())


OUTSIDE = r"component 'more' subscribes to '{}', which is not in the sub-topology of 'master' \['bolt', "


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda batches: batches.set_bolt("plain", Pass()), "component id 'plain' is used twice"),
        (lambda batches: batches.set_bolt("more", WithState()), r"declares state \['counts'\], which only committers"),
        (
            lambda batches: batches.set_bolt("more", Pass()).add_configuration(TICK_TUPLE_FREQ_SECS, 1.0),
            r"component 'more' sets 'topology\.tick\.tuple\.freq\.secs', but in a",
        ),
        *(
            (lambda batches, to=to: batches.set_bolt("more", Pass()).shuffle_grouping(to), OUTSIDE.format(to))
            for to in ("spout", "plain", "nobody")
        ),
    ],
)
def test_what_does_not_fit_into_a_topology_is_refused_when_it_is_extended(add, message):
    builder = fed_builder()
    builder.set_bolt("plain", Identity()).shuffle_grouping("spout")
    batches = with_bolt()
    add(batches).shuffle_grouping("master")
    with pytest.raises(TopologyError, match=message):
        batches.extend_topology(builder)


def test_a_master_without_a_bolt_behind_it_is_refused():
    with pytest.raises(TopologyError, match="the sub-topology of 'master' has no bolt but its master"):
        subtopology().extend_topology(fed_builder())


@pytest.mark.parametrize(
    ("hears", "message"),
    [
        ({"bolt": "master"}, "component 'master' has no input"),
        ({"master": "spout"}, "component 'bolt' has no input"),
        ({"master": "bolt", "bolt": "master"}, "the topology has a cycle"),
    ],
)
def test_a_graph_that_cannot_run_is_refused_when_the_topology_is_built(hears, message):
    builder = fed_builder()
    batches = BatchSubtopologyBuilder("master", Pass())
    declarers = {"master": batches.master_declarer, "bolt": batches.set_bolt("bolt", Pass())}
    for component_id, heard in hears.items():
        declarers[component_id].shuffle_grouping(heard)
    batches.extend_topology(builder)
    with pytest.raises(TopologyError, match=message):
        builder.build()


def test_a_component_of_a_sub_topology_cannot_be_handled_by_hand():
    builder = fed_builder()
    with_bolt().extend_topology(builder)
    with LocalCluster() as cluster, pytest.raises(TopologyError, match="'bolt' cannot be handled by hand: it belongs"):
        cluster.submit(builder.build(), by_hand=["bolt"])
