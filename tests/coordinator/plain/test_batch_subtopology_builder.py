"""What a sub-topology may look like, how it is wired, and what is refused with the reason."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from committers.committer import ICommitter
from coordinated_bolt.completeness.tracking import SourceArgs
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.batch_bolts import BaseBatchBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinated_bolt.wiring import Coordination
from coordinator.plain.batch_subtopology_builder import BatchSubtopologyBuilder
from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.testing.cluster.cluster import LocalCluster
from state import HashState
from state.errors import TopologyError


class Batch(BaseBatchBolt):
    output_fields = ("value",)

    def execute(self, tup):
        """Ignores it."""


class Basic(BaseBasicBolt):
    output_fields = ("value",)

    def execute(self, tup, collector):
        pass


class Rich(BaseRichBolt):
    def execute(self, tup):
        pass


class Committing(BaseBatchBolt, ICommitter):
    pass


class WithState(BaseBatchBolt):
    counts = HashState("counts", value=int)


def plain():
    builder = TopologyBuilder("test")
    builder.set_spout("spout", FeederSpout(["value"]))
    return builder


def subtopology(master_tasks=3):
    batches = BatchSubtopologyBuilder("master", Batch(), master_tasks)
    batches.master_declarer.shuffle_grouping("spout")
    return batches


def test_who_is_inside_and_how_many_report():
    builder = plain()
    batches = subtopology()
    batches.set_bolt("middle", Basic(), 2).shuffle_grouping("master")
    batches.set_bolt("last", Batch(), 2).shuffle_grouping("middle").fields_grouping("master", ["value"])
    batches.extend_topology(builder)
    builder.set_bolt("plain", Basic()).shuffle_grouping("middle").shuffle_grouping("spout")
    plan = make_plain_plan(builder.build(), lambda _, spec: pickle.dumps(spec))
    tasks_of = plan.wirings[1].tasks_of
    found = {wiring.component_id: wiring.coordination for wiring in plan.wirings.values()}
    single, every = SourceArgs.SINGLE, SourceArgs.ALL
    assert found == {
        "spout": None,
        "master": Coordination({}, tasks_of["middle"] + tasks_of["last"]),
        "middle": Coordination({"master": single}, tasks_of["last"]),
        "last": Coordination({"middle": every, "master": single}, ()),
        "plain": None,
    }
    assert set(plan.wirings[tasks_of["middle"][0]].targets) == {*tasks_of["last"], *tasks_of["plain"]}


def test_two_sub_topologies_are_outside_of_each_other():
    builder = plain()
    first = subtopology()
    first.set_bolt("bolt", Batch()).shuffle_grouping("master")
    second = BatchSubtopologyBuilder("second", Batch())
    second.master_declarer.shuffle_grouping("bolt")
    second.set_bolt("behind", Batch()).shuffle_grouping("second")
    second.extend_topology(builder)
    first.extend_topology(builder)
    plan = make_plain_plan(builder.build(), lambda _, spec: pickle.dumps(spec))
    found = {wiring.component_id: wiring.coordination for wiring in plan.wirings.values()}
    tasks_of = plan.wirings[1].tasks_of
    assert found["bolt"] == Coordination({"master": SourceArgs.SINGLE}, ())
    assert found["second"] == Coordination({}, tasks_of["behind"])


def test_a_master_without_a_bolt_behind_it_is_refused():
    with pytest.raises(TopologyError, match="the sub-topology of 'master' has no bolt but its master"):
        subtopology().extend_topology(plain())


@pytest.mark.parametrize("bolt", [Committing()])
def test_a_committer_is_refused_with_the_way_out(bolt):
    message = "component '{}' is a committer, .* finish in any order; for transactions, use a Tr"
    with pytest.raises(TopologyError, match=message.format("master")):
        BatchSubtopologyBuilder("master", bolt)
    with pytest.raises(TopologyError, match=message.format("bolt")):
        subtopology().set_bolt("bolt", bolt)


@pytest.mark.parametrize("bolt", [Rich(), Batch, FeederSpout(["value"]), None])
def test_what_cannot_process_batches_is_refused(bolt):
    message = "component '{}' is .*; give an instance of IBatchBolt or IBasicBolt"
    with pytest.raises(TopologyError, match=message.format("master")):
        BatchSubtopologyBuilder("master", bolt)
    with pytest.raises(TopologyError, match=message.format("bolt")):
        subtopology().set_bolt("bolt", bolt)


def test_state_is_refused():
    batches = subtopology()
    batches.set_bolt("bolt", WithState()).shuffle_grouping("master")
    with pytest.raises(TopologyError, match=r"component 'bolt' declares state \['counts'\], which only committers"):
        batches.extend_topology(plain())


@pytest.mark.parametrize("outside", ["spout", "plain", "nobody"])
def test_a_bolt_inside_that_subscribes_outside_is_refused(outside):
    builder = plain()
    builder.set_bolt("plain", Basic()).shuffle_grouping("spout")
    batches = subtopology()
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master").shuffle_grouping(outside)
    message = rf"component 'bolt' subscribes to '{outside}', which is not in the sub-topology of 'master' \['bolt', "
    with pytest.raises(TopologyError, match=message):
        batches.extend_topology(builder)


def test_ids_that_are_used_twice_are_refused():
    batches = subtopology()
    batches.set_bolt("plain", Batch()).shuffle_grouping("master")
    for component_id in ("plain", "master"):
        with pytest.raises(TopologyError, match=f"component id '{component_id}' is used twice"):
            batches.set_bolt(component_id, Batch())
    builder = plain()
    builder.set_bolt("plain", Basic()).shuffle_grouping("spout")
    with pytest.raises(TopologyError, match="component id 'plain' is used twice"):
        batches.extend_topology(builder)


@pytest.mark.parametrize("parallelism", [0, -1, True, 1.5, "2"])
def test_a_parallelism_that_is_no_number_of_tasks_is_refused(parallelism):
    with pytest.raises(TopologyError, match="parallelism of component 'master' is"):
        BatchSubtopologyBuilder("master", Batch(), parallelism)
    with pytest.raises(TopologyError, match="parallelism of component 'bolt' is"):
        subtopology().set_bolt("bolt", Batch(), parallelism)


def test_a_bolt_or_master_without_input_is_refused_when_the_topology_is_built():
    for leave_out in ("master", "bolt"):
        builder = plain()
        batches = BatchSubtopologyBuilder("master", Batch())
        declarer = batches.set_bolt("bolt", Batch())
        if leave_out == "master":
            declarer.shuffle_grouping("master")
        else:
            batches.master_declarer.shuffle_grouping("spout")
        batches.extend_topology(builder)
        with pytest.raises(TopologyError, match=f"component '{leave_out}' has no input"):
            builder.build()


def test_a_master_that_subscribes_inside_is_a_cycle():
    builder = plain()
    batches = subtopology()
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master")
    batches.master_declarer.shuffle_grouping("bolt")
    batches.extend_topology(builder)
    with pytest.raises(TopologyError, match="the topology has a cycle"):
        builder.build()


def test_a_component_of_a_sub_topology_cannot_be_handled_by_hand():
    builder = plain()
    batches = subtopology()
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master")
    batches.extend_topology(builder)
    with (
        LocalCluster() as cluster,
        pytest.raises(TopologyError, match="'bolt' cannot be handled by hand: it belongs to a sub"),
    ):
        cluster.submit(builder.build(), by_hand=["bolt"])


def test_tick_tuples_are_for_bolts_outside():
    batches = subtopology()
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master").add_configuration(TICK_TUPLE_FREQ_SECS, 1.0)
    with pytest.raises(TopologyError, match=r"component 'bolt' sets 'topology\.tick\.tuple\.freq\.secs', but in a"):
        batches.extend_topology(plain())
    builder = plain()
    batches = subtopology()
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master")
    batches.extend_topology(builder)
    builder.set_bolt("plain", Basic()).shuffle_grouping("bolt")
    topology = builder.build({TICK_TUPLE_FREQ_SECS: 1.0})  # for whoever can receive them
    plan = make_plain_plan(topology, lambda _, spec: pickle.dumps(spec))
    [task] = plan.tick_periods_s
    assert plan.wirings[task].component_id == "plain"


def test_options_of_components_inside_are_kept():
    builder = plain()
    batches = subtopology()
    batches.master_declarer.set_num_tasks(2).add_configuration("key", "master")
    batches.set_bolt("bolt", Batch()).shuffle_grouping("master").set_num_tasks(4).add_configuration("key", "bolt")
    batches.extend_topology(builder)
    plan = make_plain_plan(builder.build({"key": "topology"}), lambda _, spec: pickle.dumps(spec))
    found = Counter((wiring.component_id, wiring.conf["key"]) for wiring in plan.wirings.values())
    assert found == {("spout", "topology"): 1, ("master", "master"): 2, ("bolt", "bolt"): 4}
