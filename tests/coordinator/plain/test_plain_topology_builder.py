"""Plain topologies: what the builder refuses, with the way out, and what it hands on."""

from __future__ import annotations

from typing import Any

import pytest

from committers.committer import ICommitter
from coordinator.plain.plain_topology import PlainTopology
from coordinator.plain.plain_topology_builder import TopologyBuilder
from coordinator.spouts.memory import FeederSpout
from coordinator.topology.building.component import ComponentKind
from coordinator.topology.building.topology_builder import TransactionalTopologyBuilder
from state import HashState
from state.errors import TopologyError
from tests.support.topologies.components import Lines, Pass, shape_of
from tests.support.topologies.plain_components import AnchorTwice, Identity
from tests.support.topologies.plain_jobs import planned


class CommittingRich(AnchorTwice, ICommitter):
    """Would have nothing to commit in."""


class Stateful(AnchorTwice):
    counts = HashState("counts")


def builder_of(*spouts):
    builder = TopologyBuilder("test")
    for spout in spouts or ("spout",):
        builder.set_spout(spout, FeederSpout(("value",)))
    return builder


def refused(builder, message):
    with pytest.raises(TopologyError, match=message):
        builder.build()


def test_a_plain_topology_has_several_spouts_and_both_kinds_of_bolts():
    builder = builder_of("one", "two")
    builder.set_bolt("basic", Identity(), 3).shuffle_grouping("rich").fields_grouping("two", ["value"])
    builder.set_bolt("rich", AnchorTwice(), 2).all_grouping("one")
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
    builder.set_bolt("rich", AnchorTwice()).shuffle_grouping("rich")
    refused(builder, "the topology has no spout")


@pytest.mark.case(id="P-17")
def test_spouts_without_a_bolt_are_refused():
    refused(builder_of("one", "two"), "the topology has no bolt")


@pytest.mark.case(id="P-17")
def test_a_cycle_is_refused():
    builder = builder_of()
    builder.set_bolt("a", AnchorTwice()).shuffle_grouping("spout").shuffle_grouping("b")
    builder.set_bolt("b", Identity()).shuffle_grouping("a")
    refused(builder, "the topology has a cycle: (a -> b -> a|b -> a -> b); remove a subscription")


@pytest.mark.case(id="P-17")
def test_unknown_sources_streams_and_fields_and_doubled_names_are_refused():
    builder = builder_of()
    builder.set_bolt("rich", AnchorTwice()).shuffle_grouping("nobody")
    refused(builder, "component 'rich' subscribes to the unknown component 'nobody'")
    builder = builder_of()
    builder.set_bolt("rich", AnchorTwice()).fields_grouping("spout", ["word"])
    refused(builder, "field 'word' does not exist")
    with pytest.raises(TopologyError, match="component id 'spout' is used twice"):
        builder.set_spout("spout", FeederSpout(("value",)))
    with pytest.raises(TopologyError, match="component id '__system' begins with two underscores"):
        builder.set_bolt("__system", AnchorTwice())


NO_SPOUT = "spout 'x' is .*; give an instance of ISpout"
TRANSACTIONS = "for transactions, use a TransactionalTopologyBuilder"
NO_BOLT = "component 'x' is .*; give an instance of IRichBolt or IBasicBolt"
BATCHES = (
    "a plain topology has no batches to finish or commit; make it an IRichBolt or IBasicBolt, or put it into a "
    f"sub-topology with a BatchSubtopologyBuilder; {TRANSACTIONS}"
)
STATE = r"component 'x' declares state \['counts'\], which only committers of transactional topologies can write"
PLAIN = "or build a plain topology with a TopologyBuilder"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((spout, NO_SPOUT) for spout in (FeederSpout, Identity(), None)),
        (Lines(), f"{NO_SPOUT}; {TRANSACTIONS}"),
    ],
)
def test_a_spout_of_another_kind_is_refused_with_the_way_out(given, message):
    with pytest.raises(TopologyError, match=message):
        builder_of().set_spout("x", given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((bolt, NO_BOLT) for bolt in (Identity, FeederSpout(("value",)), None)),
        *((bolt, BATCHES) for bolt in (Pass(), CommittingRich())),
        (Stateful(), STATE),
    ],
)
def test_a_bolt_of_another_kind_is_refused_with_the_way_out(given, message):
    with pytest.raises(TopologyError, match=message):
        builder_of().set_bolt("x", given)


def test_plain_components_are_refused_in_a_transactional_topology_with_the_way_out():
    spout: Any = FeederSpout(("value",))
    bolt: Any = AnchorTwice()
    with pytest.raises(TopologyError, match=f"spout 'spout' is .*, {PLAIN}"):
        TransactionalTopologyBuilder("test", "spout", spout)
    with pytest.raises(TopologyError, match=f"component 'rich' is .*, {PLAIN}"):
        TransactionalTopologyBuilder("test", "lines", Lines()).set_bolt("rich", bolt)


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
    builder.set_bolt("rich", AnchorTwice(), 2).shuffle_grouping("spout")
    builder.set_acker_count(0)
    builder.set_max_spout_pending(7)
    builder.set_message_timeout_s(5)
    topology = builder.build()
    assert (topology.acker_count, topology.max_spout_pending, topology.message_timeout_s) == (0, 7, 5.0)
    plan = planned(topology)
    assert (plan.acker_tasks, plan.max_spout_pending, plan.message_timeout_s) == ((), 7, 5.0)
    builder.disable_message_timeouts()
    assert builder.build().message_timeout_s is None


def test_tasks_are_numbered_over_all_components_with_the_ackers_last():
    builder = builder_of("one", "two")
    builder.set_bolt("rich", AnchorTwice(), 2).shuffle_grouping("one").all_grouping("two")
    builder.set_acker_count(2)
    plan = planned(builder.build())
    assert plan.spout_tasks == (1, 2)
    assert sorted(plan.wirings) == [1, 2, 3, 4]
    assert plan.acker_tasks == plan.wirings[1].acker_tasks == (5, 6)
    assert (plan.wirings[1].targets, plan.wirings[3].targets) == ((3, 4), ())
    assert {task: source.component_id for task, source in plan.wirings[3].upstream.items()} == {1: "one", 2: "two"}
    assert not any(wiring.needs_id for wiring in plan.wirings.values())
