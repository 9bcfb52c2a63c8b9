"""Which components run as one, and how their tasks are wired then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.acker import ACKER_COMPONENT
from coordinated_bolt.components.batch_bolts import IBatchBolt
from coordinated_bolt.streams.groupings import LocalOrShuffleGrouping, ShuffleGrouping
from coordinator.topology.building.topology import Topology
from coordinator.topology.building.topology_builder import BoltDeclarer, TransactionalTopologyBuilder
from tests.support.scenarios.chained_topologies import chained_scenario
from tests.support.scenarios.random_bolts import LocalTally, topology_of
from tests.support.topologies.components import Commit, Lines, Pass, Sink, build, layout, plan


class Named(Pass):
    """Emits on a direct stream too."""

    def declare_output_fields(self, declarer):
        declarer.declare(("line", "number"))
        declarer.declare_stream("named", ("line", "number"), direct=True)


def chains(topology: Topology) -> list[tuple[str, ...]]:
    return list(plan(topology, is_chained=True).chains)


def two(subscribe, *, tasks: int = 2, bolt: IBatchBolt | None = None, heard: IBatchBolt | None = None) -> Topology:
    """lines -> a -> b, where `subscribe` says how b hears a."""
    builder = TransactionalTopologyBuilder("test", "lines", Lines(), parallelism=1)
    builder.set_bolt("a", heard or Pass(), tasks).fields_grouping("lines", ["line"])
    subscribe(builder.set_bolt("b", bolt or Pass(), tasks))
    return builder.build()


def test_word_count_is_two_stages():
    topology = build(("count", Pass(), ["lines"], 2), ("store", Commit(), ["count"], 2), spout_tasks=2)
    assert chains(topology) == [("lines", "count")]
    assert layout(plan(topology, is_chained=True)) == [["lines", "lines"], [ACKER_COMPONENT, "store", "store"]]


@pytest.mark.parametrize(
    "subscribe",
    [
        lambda bolt: bolt.shuffle_grouping("a"),
        lambda bolt: bolt.none_grouping("a"),
        lambda bolt: bolt.local_or_shuffle_grouping("a"),
    ],
    ids=["shuffle", "none", "local or shuffle"],
)
def test_a_grouping_that_leaves_the_task_open_makes_a_chain(subscribe):
    assert chains(two(subscribe)) == [("lines",), ("a", "b")]


class OwnShuffle(ShuffleGrouping):
    """Chooses in a way of its own."""


FIXED = {
    "a kind of shuffle": lambda bolt: bolt.grouping("a", OwnShuffle()),
    "fields": lambda bolt: bolt.fields_grouping("a", ["line"]),
    "partial key": lambda bolt: bolt.partial_key_grouping("a", ["line"]),
    "all": lambda bolt: bolt.all_grouping("a"),
    "global": lambda bolt: bolt.global_grouping("a"),
    "direct": lambda bolt: bolt.direct_grouping("a", "named"),
    "shuffle and fields": lambda bolt: bolt.shuffle_grouping("a").direct_grouping("a", "named"),
}


@pytest.mark.parametrize("subscribe", FIXED.values(), ids=FIXED)
def test_a_grouping_that_names_the_task_makes_none(subscribe):
    assert chains(two(subscribe, heard=Named())) == [("lines",), ("a",), ("b",)]


@pytest.mark.parametrize("subscribe", FIXED.values(), ids=FIXED)
def test_with_one_task_each_any_grouping_makes_a_chain(subscribe):
    assert chains(two(subscribe, tasks=1, heard=Named())) == [("lines", "a", "b")]


def test_a_component_with_more_tasks_or_fewer_begins_a_chain():
    topology = build(("more", Pass(), ["lines"], 3), ("fewer", Pass(), ["more"], 2), spout_tasks=2)
    assert chains(topology) == [("lines",), ("more",), ("fewer",)]


def test_chains_are_as_long_as_they_can_be():
    topology = build(
        ("a", Pass(), ["lines"]), ("b", Pass(), ["a"]), ("c", Pass(), ["lines", "b"]), ("d", Sink(), ["c"])
    )
    assert chains(topology) == [("lines", "a", "b", "c", "d")]
    assert layout(plan(topology, is_chained=True)) == [["lines"], [ACKER_COMPONENT]]


def test_two_components_on_one_are_both_chained_to_it():
    topology = build(("a", Pass(), ["lines"], 2), ("b", Pass(), ["lines"], 2), spout_tasks=2)
    assert chains(topology) == [("lines", "a", "b")]


def test_a_component_that_hears_two_chains_belongs_to_neither():
    topology = build(("a", Pass(), ["lines"], 2), ("b", Pass(), ["lines", "a"], 2), ("c", Pass(), ["b"], 2))
    assert chains(topology) == [("lines",), ("a",), ("b", "c")]


def test_no_committer_and_nothing_below_one_is_chained():
    bolts = ("a", Pass(), ["lines"]), ("store", Commit(), ["a"]), ("next", Commit(), ["store"]), ("b", Pass(), ["next"])
    assert chains(build(*bolts)) == [("lines", "a")]
    assert layout(plan(build(*bolts), is_chained=True)) == [["lines"], [ACKER_COMPONENT, "store"], ["next"], ["b"]]


@pytest.mark.parametrize(
    ("alone", "expected"),
    [
        ("lines", [("lines",), ("a", "b", "c")]),
        ("b", [("lines", "a"), ("b",), ("c",)]),
        ("c", [("lines", "a", "b"), ("c",)]),
    ],
)
def test_a_component_that_disables_chaining_runs_alone(alone, expected):
    builder = TransactionalTopologyBuilder("test", "lines", Lines())
    declarers: dict[str, BoltDeclarer] = {}
    for name, heard in (("a", "lines"), ("b", "a"), ("c", "b")):
        declarers[name] = builder.set_bolt(name, Pass()).shuffle_grouping(heard)
    (declarers.get(alone) or builder.spout_declarer).disable_chaining()
    assert chains(builder.build()) == expected


def test_a_chain_stands_as_deep_as_what_its_head_hears():
    """`deep` hears nothing but a chain's end, which is no deeper than its beginning."""
    bolts = [
        ("a", Pass(), ["lines"]),
        ("b", Pass(), ["a"]),
        ("wide", Pass(), ["b"], 2),
        ("wider", Pass(), ["wide"], 2),
        ("store", Commit(), ["wider", "a"]),
    ]
    assert layout(plan(build(*bolts), is_chained=True)) == [["lines"], ["wide", "wide"], [ACKER_COMPONENT, "store"]]


def test_a_task_of_a_chain_hears_and_tells_its_counterpart_only():
    topology = build(("a", Pass(), ["lines"], 2), ("b", Pass(), ["a"], 2), ("c", Pass(), ["a"], 3), spout_tasks=2)
    made = plan(topology, is_chained=True)
    lines, a, b = made.wirings[1], made.wirings[4], made.wirings[6]
    assert (lines.targets, lines.chained_targets) == ((3,), (3,))
    assert (a.task_index, list(a.upstream)) == (1, [2])
    assert (a.targets, a.chained_targets) == ((6, 7, 8, 9), (6,))
    assert [(s.component_id, s.tasks) for s in a.streams["default"].subscribers] == [("b", (5, 6)), ("c", (7, 8, 9))]
    assert a.streams["default"].subscribers[0].grouping == LocalOrShuffleGrouping(local_positions=(1,))
    assert (list(b.upstream), b.targets) == ([4], ())
    assert made.chained_to(1) == (3, 5)
    assert made.chained_to(2) == (4, 6)
    assert [made.chained_to(task) for task in (3, 7)] == [(), ()]


def test_the_outline_shows_chains_stage_by_stage():
    topology = build(
        ("a", Pass(), ["lines"], 2), ("b", Pass(), ["a"], 3), ("store", Commit(), ["b"]), spout_tasks=2, ackers=2
    )
    assert plan(topology, is_chained=True).outline() == ["lines+a * 2", "b * 3", "__acker * 2, store * 1"]
    assert plan(topology).outline() == ["lines * 2", "a * 2", "b * 3", "__acker * 2, store * 1"]


ONE_EACH = (("a", Pass(), ["lines"]), ("store", Commit(), ["a"]), ("other", Commit(), ["lines"]))


def test_one_chain_of_one_task_over_one_task_each_needs_no_shuffle():
    assert plan(build(*ONE_EACH), is_chained=True).is_one_partition()
    assert plan(build(("a", Pass(), ["lines"])), is_chained=True).is_one_partition()


@pytest.mark.parametrize(
    ("topology", "is_chained"),
    [
        (build(*ONE_EACH), False),
        (build(*ONE_EACH, ackers=2), True),
        (build(*ONE_EACH, spout_tasks=2), True),
        (build(("a", Pass(), ["lines"]), ("store", Commit(), ["a"], 2)), True),
        (build(("store", Commit(), ["lines"]), ("below", Sink(), ["store"])), True),
    ],
    ids=["not chained", "ackers", "spout", "committer", "below a committer"],
)
def test_a_second_task_anywhere_or_a_second_commit_level_needs_one(topology, is_chained):
    assert not plan(topology, is_chained=is_chained).is_one_partition()


def test_every_task_of_a_chain_reports_to_the_acker():
    topology = build(("a", Pass(), ["lines"], 2), ("store", Commit(), ["a"]), spout_tasks=2)
    made = plan(topology, is_chained=True)
    assert made.processing_tasks() == {1: ("lines", 0), 2: ("lines", 1), 3: ("a", 0), 4: ("a", 1)}


@given(st.randoms(use_true_random=False).map(chained_scenario))
def test_every_task_runs_once_after_those_it_hears(scenario):
    made = plan(topology_of(scenario, LocalTally("planned")), is_chained=True)
    order = [
        task
        for stage in made.stages
        for head in stage.tasks
        for task in (head, *(() if head in made.acker_tasks else made.chained_to(head)))
    ]
    assert sorted(order) == sorted([*made.wirings, *made.acker_tasks])
    heads = {
        task: head
        for s in made.stages
        for head in s.tasks
        if head in made.wirings
        for task in (head, *made.chained_to(head))
    }
    stage_of = {task: index for index, stage in enumerate(made.stages) for task in stage.tasks}
    for task, wiring in made.wirings.items():
        assert all(order.index(above) < order.index(task) for above in wiring.upstream)
        assert all(task in made.wirings[above].targets for above in wiring.upstream)
        for target in wiring.targets:
            assert (heads[target] == heads[task]) == (target in wiring.chained_targets)
            assert target in wiring.chained_targets or stage_of[heads[task]] < stage_of[heads[target]]
