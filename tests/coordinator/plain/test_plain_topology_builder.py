"""Plain topologies: what the builder refuses, with the way out, and what it hands on."""

from __future__ import annotations

import pickle

import pytest

from committers.committer import ICommitter
from coordinated_bolt.components.basic_bolts import BaseBasicBolt
from coordinated_bolt.components.rich_bolts import BaseRichBolt
from coordinated_bolt.components.spouts import BaseSpout
from coordinator.plain.plain_plan import make_plain_plan
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.plain.tasks.bolt_task import BoltTask
from coordinator.plain.tasks.spout_task import SpoutTask
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.component import ComponentKind
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import TopologyError
from tests.support.tasks.messages import message_outbox
from tests.support.topologies.components import Lines, shape_of
from tests.support.topologies.components import Pass as BatchPass


class Spout(BaseSpout):
    output_fields = ("value",)

    def next_tuple(self):
        """Emits nothing."""


class Rich(BaseRichBolt):
    output_fields = ("value",)

    def execute(self, tup):
        """Does nothing."""


class Basic(BaseBasicBolt):
    output_fields = ("value",)

    def execute(self, tup, collector):
        """Does nothing."""


class CommittingRich(Rich, ICommitter):
    pass


def builder_of(*spouts):
    builder = TopologyBuilder("test")
    for spout in spouts or ("spout",):
        builder.set_spout(spout, Spout())
    return builder


def refused(builder, message):
    with pytest.raises(TopologyError, match=message):
        builder.build()


def test_a_plain_topology_has_several_spouts_and_both_kinds_of_bolts():
    builder = builder_of("one", "two")
    builder.set_bolt("basic", Basic(), 3).shuffle_grouping("rich").fields_grouping("two", ["value"])
    builder.set_bolt("rich", Rich(), 2).all_grouping("one")
    topology = builder.build({"key": 1})
    assert isinstance(topology, PlainTopology)
    ids = [component.component_id for component in topology.components]
    assert ids.index("rich") < ids.index("basic")
    assert [spout.component_id for spout in topology.spouts] == ["one", "two"]
    assert topology.component("basic").kind is ComponentKind.BOLT
    assert topology.conf == {"key": 1}
    assert topology.acker_count == 1
    assert topology.message_timeout_s == 30
    assert topology.max_spout_pending == 100_000
    assert any(line.startswith("basic*3[bolt]<-(rich/default:") for line in shape_of(topology))


def test_a_topology_without_a_spout_is_refused():
    refused(TopologyBuilder("test"), "the topology has no spout; add one with set_spout")
    builder = TopologyBuilder("test")
    builder.set_bolt("rich", Rich()).shuffle_grouping("rich")
    refused(builder, "the topology has no spout")


@pytest.mark.case(id="P-17")
def test_spouts_without_a_bolt_are_refused():
    refused(builder_of("one", "two"), "the topology has no bolt")


@pytest.mark.case(id="P-17")
def test_a_cycle_is_refused():
    builder = builder_of()
    builder.set_bolt("a", Rich()).shuffle_grouping("spout").shuffle_grouping("b")
    builder.set_bolt("b", Basic()).shuffle_grouping("a")
    refused(builder, "the topology has a cycle: (a -> b -> a|b -> a -> b); remove a subscription")


@pytest.mark.case(id="P-17")
def test_unknown_sources_streams_and_fields_and_doubled_names_are_refused():
    builder = builder_of()
    builder.set_bolt("rich", Rich()).shuffle_grouping("nobody")
    refused(builder, "component 'rich' subscribes to the unknown component 'nobody'")
    builder = builder_of()
    builder.set_bolt("rich", Rich()).fields_grouping("spout", ["word"])
    refused(builder, "field 'word' does not exist")
    with pytest.raises(TopologyError, match="component id 'spout' is used twice"):
        builder.set_spout("spout", Spout())
    with pytest.raises(TopologyError, match="component id '__system' begins with two underscores"):
        builder.set_bolt("__system", Rich())


@pytest.mark.parametrize("spout", [Lines(), Spout, Rich(), None])
def test_a_spout_of_another_kind_is_refused_with_the_way_out(spout):
    message = "spout 'spout' is .*; give an instance of ISpout"
    if isinstance(spout, Lines):
        message += "; for transactions, use a TransactionalTopologyBuilder"
    with pytest.raises(TopologyError, match=message):
        TopologyBuilder("test").set_spout("spout", spout)


@pytest.mark.parametrize("bolt", [BatchPass(), CommittingRich()])
def test_a_bolt_of_transactions_is_refused_with_the_way_out(bolt):
    message = (
        "a plain topology has no batches to finish or commit; make it an IRichBolt or IBasicBolt, or put it into a "
        "sub-topology with a BatchSubtopologyBuilder; for transactions, use a TransactionalTopologyBuilder"
    )
    with pytest.raises(TopologyError, match=message):
        builder_of().set_bolt("bolt", bolt)


@pytest.mark.parametrize("bolt", [Rich, Spout(), None])
def test_what_is_no_bolt_is_refused(bolt):
    with pytest.raises(TopologyError, match=r"component 'bolt' is .*; give an instance of IRichBolt or IBasicBolt"):
        builder_of().set_bolt("bolt", bolt)


def test_plain_components_are_refused_in_a_transactional_topology_with_the_way_out():
    way = "or build a plain topology with a TopologyBuilder"
    with pytest.raises(TopologyError, match=f"spout 'spout' is .*, {way}"):
        TransactionalTopologyBuilder("test", "spout", FeederSpout(("value",)))  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match=f"component 'rich' is .*, {way}"):
        TransactionalTopologyBuilder("test", "lines", Lines()).set_bolt("rich", Rich())  # type: ignore[arg-type]


def test_state_is_refused_for_there_is_no_transaction_to_write_it():
    class Stateful(Rich):
        counts = HashState("counts")

    message = (
        r"component 'bolt' declares state \['counts'\], which only committers of transactional topologies can write"
    )
    with pytest.raises(TopologyError, match=message):
        builder_of().set_bolt("bolt", Stateful())


@pytest.mark.case(id="P-12")
@pytest.mark.parametrize("count", [-1, True, 1.5, "1", None, 10_001])
def test_an_acker_count_that_is_not_a_count_is_refused_and_0_is_one(count):
    with pytest.raises(TopologyError, match=f"acker count is {count!r}; give an integer from 0 to 10000"):
        builder_of().set_acker_count(count)


@pytest.mark.case(id="P-12")
@pytest.mark.parametrize("seconds", [0, -1, 0.0, float("nan"), float("inf"), "5", None, True])
def test_a_message_timeout_that_is_not_a_time_is_refused(seconds):
    with pytest.raises(TopologyError, match=f"message timeout is {seconds!r}; give a number of seconds above 0"):
        builder_of().set_message_timeout_s(seconds)


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "1", None])
def test_a_max_spout_pending_that_is_no_bound_is_refused(count):
    with pytest.raises(TopologyError, match=f"max spout pending is {count!r}; give an integer of at least 1"):
        builder_of().set_max_spout_pending(count)


def test_the_options_reach_topology_and_plan():
    builder = builder_of()
    builder.set_bolt("rich", Rich(), 2).shuffle_grouping("spout")
    builder.set_acker_count(0)
    builder.set_max_spout_pending(7)
    builder.set_message_timeout_s(5)
    topology = builder.build()
    assert (topology.acker_count, topology.max_spout_pending, topology.message_timeout_s) == (0, 7, 5.0)
    plan = make_plain_plan(topology, lambda _, spec: pickle.dumps(spec))
    assert (plan.acker_tasks, plan.max_spout_pending, plan.message_timeout_s) == ((), 7, 5.0)
    builder.disable_message_timeouts()
    assert builder.build().message_timeout_s is None


def test_tasks_are_numbered_over_all_components_with_the_ackers_last():
    builder = builder_of("one", "two")
    builder.set_bolt("rich", Rich(), 2).shuffle_grouping("one").all_grouping("two")
    builder.set_acker_count(2)
    plan = make_plain_plan(builder.build(), lambda _, spec: pickle.dumps(spec))
    assert plan.spout_tasks == (1, 2)
    assert sorted(plan.wirings) == [1, 2, 3, 4]
    assert plan.acker_tasks == plan.wirings[1].acker_tasks == (5, 6)
    assert (plan.wirings[1].targets, plan.wirings[3].targets) == ((3, 4), ())
    assert {task: source.component_id for task, source in plan.wirings[3].upstream.items()} == {1: "one", 2: "two"}
    assert not any(wiring.needs_id for wiring in plan.wirings.values())


def test_the_plan_is_plain_data_to_be_shipped_and_makes_live_tasks():
    from random import Random

    builder = builder_of()
    builder.set_bolt("basic", Basic()).shuffle_grouping("spout")
    plan = pickle.loads(pickle.dumps(make_plain_plan(builder.build(), lambda _, spec: pickle.dumps(spec))))
    sent: list[object] = []
    outbox = message_outbox(1, (), sent.append)
    SpoutTask(plan.wirings[1], outbox, Random(1)).start()
    BoltTask(plan.wirings[2], outbox, Random(1)).start()
    assert sent == []
