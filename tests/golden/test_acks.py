"""Golden case G6: trees close exactly when every edge was put in twice; at the acker and on real tasks."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinated_bolt.completeness.acker import Acker, AckOutcome
from coordinator.spouts.memory import FeederSpout
from tests.support.topologies.plain_components import AnchorAll, AnchorTwice, Identity, Sink, fed_builder, start

pytestmark = pytest.mark.case(id="G6")

ACKED, FAILED = AckOutcome.ACKED, AckOutcome.FAILED
E1, E2, E3, E4 = 1 << 60, 1 << 41, 1 << 22, 1 << 3
"""Edges of which no proper subset cancels, as random 64-bit ids do not."""

SPOUT_TO_TWO_TO_ONE = [("init", E1 ^ E2), ("ack", E1 ^ E3), ("ack", E2 ^ E4), ("ack", E3), ("ack", E4)]


def tell(acker, root, event):
    name, *edges = event
    return getattr(acker, name)(root, *edges)


def test_two_branches_that_meet_close_with_the_last_event_in_every_order():
    for order in permutations(SPOUT_TO_TWO_TO_ONE):
        acker = Acker[str]()
        outcomes = [tell(acker, "root", event) for event in order]
        assert outcomes == [None, None, None, None, ACKED], order
        assert len(acker) == 0


@pytest.mark.case(id="G7")
def test_a_tree_of_a_hundred_edges_closes_only_with_the_last_of_them():
    """What Heron keeps in a rotating map that xors is kept by the acker."""
    ids = Random(7)
    first, *others = edges = [ids.getrandbits(64) for _ in range(100)]
    acker = Acker[str]()
    outcomes = [acker.init("root", first), *(acker.ack("root", edge) for edge in others + edges[:-1])]
    assert outcomes == [None] * 199
    assert acker.ack("root", edges[-1]) is ACKED


@pytest.mark.parametrize(
    ("order", "outcomes"),
    [
        ("init ack", [None, ACKED]),
        ("ack init", [None, ACKED]),
        ("init fail", [None, FAILED]),
        ("fail init", [None, FAILED]),
        ("init ack fail", [None, ACKED, None]),
        ("init fail ack", [None, FAILED, None]),
        ("fail init ack", [None, FAILED, None]),
        ("ack init fail", [None, ACKED, None]),
        ("ack fail init", [None, None, ACKED]),
        ("fail ack init", [None, None, ACKED]),
    ],
)
def test_init_ack_and_fail_in_every_order_end_the_tree_once(order, outcomes):
    events = {"init": ("init", E1), "ack": ("ack", E1), "fail": ("fail",)}
    acker = Acker[str]()
    assert [tell(acker, "root", events[name]) for name in order.split()] == outcomes


def test_a_root_nobody_subscribes_to_is_acked_at_once():
    acker = Acker[str]()
    assert acker.init("root", 0) is ACKED
    assert len(acker) == 0


def test_an_init_that_comes_twice_does_not_close_a_tree_that_is_open():
    acker = Acker[str]()
    assert acker.init("root", 5) is None
    assert acker.init("root", 5) is None
    assert acker.ack("root", 5) is AckOutcome.ACKED


def test_a_join_anchored_on_two_feeds_acks_both_with_the_second():
    acker = Acker[int]()
    left, right, joined = (E1, 2 * E1), (E2, 2 * E2), (E3, 2 * E3)
    for feed in (0, 1):
        assert acker.init(feed, left[feed] ^ right[feed]) is None
    # the identities pass the first feed on; the join keeps it
    assert acker.ack(0, left[0] ^ right[0] ^ E4) is None
    # the second feed completes the join, which anchors one tuple on both feeds, an edge each
    assert acker.ack(1, left[1] ^ right[1] ^ E4) is None
    assert [acker.ack(feed, E4 ^ joined[feed]) for feed in (0, 1)] == [None, None]
    assert [acker.ack(feed, joined[feed]) for feed in (0, 1)] == [ACKED, ACKED]


@pytest.mark.parametrize("feeds", [1, 3])
def test_a_tuple_anchored_twice_on_the_same_one_is_acked_once_a_feed(feeds):
    acker = Acker[int]()
    acked = 0
    for feed in range(feeds):
        events = [("init", E1), ("ack", E1 ^ E2 ^ E3), ("ack", E2 ^ E3)]
        acked += [tell(acker, feed, event) for event in events].count(ACKED)
    assert acked == feeds


def test_an_open_tree_never_ends_by_itself_and_is_kept_until_it_is_forgotten():
    acker = Acker[str]()
    acker.init("open", E1)
    acker.ack("never initialised", E2)
    assert len(acker) == 2
    for root in ("never initialised", "open"):
        assert root in acker
        acker.forget(root)
    assert len(acker) == 0


@st.composite
def graphs(draw):
    """Edges (from, to) of a graph in which every task can be reached from task 0."""
    task_count = draw(st.integers(2, 7))
    edges = [(draw(st.integers(0, task - 1)), task) for task in range(1, task_count)]
    more = draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6))
    return edges + [(a, b) for a, b in more if a < b < task_count]


@given(graphs(), st.randoms(use_true_random=False))
def test_any_graph_closes_with_its_last_report_in_any_order(edges, random):
    values = dict.fromkeys(range(1 + max(target for _, target in edges)), 0)
    for number, (source, target) in enumerate(edges):
        values[source] ^= 1 << number
        values[target] ^= 1 << number
    events = [("ack" if task else "init", value) for task, value in values.items()]
    random.shuffle(events)
    acker = Acker[str]()
    outcomes = [tell(acker, "root", event) for event in events]
    assert outcomes == [None] * (len(events) - 1) + [ACKED]


@given(graphs(), st.randoms(use_true_random=False), st.data())
def test_a_lost_or_doubled_report_leaves_the_tree_open(edges, random, data):
    values = dict.fromkeys(range(1 + max(target for _, target in edges)), 0)
    for number, (source, target) in enumerate(edges):
        values[source] ^= 1 << number
        values[target] ^= 1 << number
    events = [("ack", value) for task, value in values.items() if task]
    place = data.draw(st.integers(0, len(events) - 1))
    events[place : place + 1] = data.draw(st.sampled_from([[], [events[place]] * 2]))
    random.shuffle(events)
    acker = Acker[str]()
    acker.init("root", values[0])
    for event in events:
        tell(acker, "root", event)
    assert "root" in acker


# on the tasks of a plain topology, each under many schedules

seeds = pytest.mark.parametrize("seed", range(40))


def branches_that_meet():
    builder = fed_builder()
    builder.set_bolt("left", Identity()).shuffle_grouping("spout")
    builder.set_bolt("right", Identity()).shuffle_grouping("spout")
    builder.set_bolt("join", AnchorAll(4)).shuffle_grouping("left").shuffle_grouping("right")
    builder.set_bolt("sink", Sink()).shuffle_grouping("join")
    return builder


@seeds
def test_a_join_of_two_branches_acks_nothing_on_the_first_feed_and_both_on_the_second(seed):
    run = start(branches_that_meet(), seed=seed)
    run.feed("spout", [1], "first")
    run.run_until_idle()
    assert run.acked("spout") == []
    run.feed("spout", [2], "second")
    run.run_until_idle()
    assert sorted(run.acked("spout")) == ["first", "second"]
    assert run.failed("spout") == []
    assert run.emitted("join") == [("default", [4])]


@seeds
@pytest.mark.parametrize("feeds", [1, 3])
def test_a_bolt_that_anchors_twice_on_its_input_acks_once_a_feed(seed, feeds):
    builder = fed_builder()
    builder.set_bolt("twice", AnchorTwice()).shuffle_grouping("spout")
    builder.set_bolt("sink", Sink()).shuffle_grouping("twice")
    run = start(builder, seed=seed)
    for number in range(feeds):
        run.feed("spout", [number], number)
        run.run_until_idle()
    assert run.acked("spout") == list(range(feeds))


@seeds
def test_with_timeouts_disabled_a_tuple_nobody_acks_never_fails(seed):
    builder = fed_builder()
    builder.set_bolt("keeper", Identity()).shuffle_grouping("spout")
    builder.disable_message_timeouts()
    run = start(builder, seed=seed, by_hand=("keeper",))
    run.feed("spout", [1], "kept")
    run.run_until_idle()
    run.advance_time(1_000_000)
    run.run_until_idle()
    assert (run.acked("spout"), run.failed("spout"), run.pending_count("spout")) == ([], [], 1)
    run.ack(run.waiting("keeper")[0])
    run.run_until_idle()
    assert run.acked("spout") == ["kept"]


@seeds
@pytest.mark.parametrize("ackers", [1, 2, 5])
def test_whichever_of_init_and_ack_comes_first_there_is_one_ack(seed, ackers):
    # one channel leads from the spout to the acker, another by way of the bolt: the seed decides which is faster
    builder = fed_builder()
    builder.set_bolt("sink", Sink(), parallelism=2).shuffle_grouping("spout")
    builder.set_acker_count(ackers)
    run = start(builder, seed=seed)
    for number in range(5):
        run.feed("spout", [number], number)
    run.run_until_idle()
    assert sorted(run.acked("spout")) == [0, 1, 2, 3, 4]


@seeds
def test_a_root_nobody_subscribes_to_is_acked_by_its_acker(seed):
    builder = fed_builder()
    builder.set_spout("unheard", FeederSpout(("value",)))
    builder.set_bolt("sink", Sink()).shuffle_grouping("spout")
    run = start(builder, seed=seed)
    run.feed("unheard", [1], "alone")
    assert run.acked("unheard") == []
    run.run_until_idle()
    assert run.acked("unheard") == ["alone"]
