"""Under every schedule: each tracked message ends exactly once, as what became of it says, and none is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinated_bolt.streams.groupings import AllGrouping, FieldsGrouping, GlobalGrouping, ShuffleGrouping
from coordinated_bolt.streams.plain_tuple import TICK_TUPLE_FREQ_SECS
from coordinator.plain.plain_topology_builder import TopologyBuilder
from tests.support.topologies.plain_components import AnchorAll, Identity, Numbers, Shaky, Sink, Unsteady, start

CAPACITIES = st.sampled_from([1, 2, 1024])
GROUPINGS = [ShuffleGrouping(), AllGrouping(), GlobalGrouping(), FieldsGrouping]


@pytest.fixture(autouse=True)
def _no_old_counts():
    clear()


def clear():
    for counter in (Numbers.acked, Numbers.failed, Shaky.struck, Unsteady.seen):
        counter.clear()


@st.composite
def topologies(draw):
    """A topology of random bolts, each below the spout or some of the bolts before it."""
    builder = TopologyBuilder("test")
    builder.set_spout("b0", Numbers(draw(st.integers(0, 12)), replays=False), draw(st.integers(1, 3)))
    bolt_count = draw(st.integers(1, 5))
    for number in range(1, bolt_count + 1):
        bolt = Shaky(draw(st.integers(0, 99)), draw(st.integers(0, 2)))
        declarer = builder.set_bolt(f"b{number}", bolt, draw(st.integers(1, 3)))
        for above in draw(st.sets(st.integers(0, number - 1), min_size=1)):
            grouping = draw(st.sampled_from(GROUPINGS))
            made = grouping(("value" if above == 0 else "numbers",)) if grouping is FieldsGrouping else grouping
            declarer.grouping(f"b{above}", made)
    builder.set_acker_count(draw(st.integers(1, 3)))
    builder.set_max_spout_pending(draw(st.sampled_from([1, 3, 100])))
    builder.disable_message_timeouts()
    return builder, bolt_count


@settings(max_examples=150)
@given(topologies(), st.integers(0, 2**32), CAPACITIES)
def test_a_message_is_failed_if_a_bolt_failed_part_of_its_tree_else_acked_and_either_once(topology, seed, capacity):
    clear()
    builder, bolt_count = topology
    run = start(builder, {TICK_TUPLE_FREQ_SECS: 1}, seed=seed, receive_capacity=capacity)
    spout = builder.build().component("b0")
    pause = 0
    while pause <= bolt_count:  # a tick empties what the bolts of one level hold, for the next level to hold
        before = len(run.acked("b0")) + len(run.failed("b0"))
        run.run_until_idle()
        run.advance_time(1)
        run.run_until_idle()
        pause = 0 if len(run.acked("b0")) + len(run.failed("b0")) > before else pause + 1
    struck = set(Shaky.struck)
    everything = set(range(len(spout.spec.waiting)))
    assert sorted(run.failed("b0")) == sorted(struck)
    assert sorted(run.acked("b0")) == sorted(everything - struck)
    assert run.pending_count("b0") == 0


@settings(max_examples=100)
@given(
    seed=st.integers(0, 2**32),
    capacity=CAPACITIES,
    count=st.integers(1, 30),
    faults=st.integers(0, 8),
    parallelism=st.integers(1, 3),
    pending=st.integers(1, 40),
)
def test_with_replays_every_message_is_processed_at_least_once(*, seed, capacity, count, faults, parallelism, pending):
    clear()
    builder = TopologyBuilder("test")
    builder.set_spout("spout", Numbers(count), parallelism)
    builder.set_bolt("first", Unsteady(1, faults), parallelism).shuffle_grouping("spout")
    builder.set_bolt("second", Unsteady(2, faults), parallelism).fields_grouping("first", ["value"])
    builder.set_bolt("sink", Sink()).global_grouping("second")
    builder.set_max_spout_pending(pending)
    builder.set_message_timeout_s(10)
    run = start(builder, seed=seed, receive_capacity=capacity)
    run.run_until_idle()
    while run.pending_count("spout"):
        run.advance_time(10)
        run.run_until_idle()
    assert Numbers.acked == dict.fromkeys(range(count), 1)
    assert all(Unsteady.seen[number] >= 2 for number in range(count))
    assert Numbers.failed.total() <= 2 * faults * parallelism  # each fault cost one replay at most


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("pending", [1, 2, 7])
def test_max_spout_pending_holds_at_every_step(seed, pending):
    builder = TopologyBuilder("test")
    builder.set_spout("spout", Numbers(30))
    builder.set_bolt("first", Unsteady(seed, 5), parallelism=2).shuffle_grouping("spout")
    builder.set_bolt("sink", Sink()).global_grouping("first")
    builder.set_max_spout_pending(pending)
    builder.set_message_timeout_s(10)
    run = start(builder, seed=seed)
    most = 0
    while len(run.acked("spout")) < 30:
        if not run.tick():
            run.advance_time(10)
        most = max(most, run.pending_count("spout"))
    assert most == pending


@pytest.mark.parametrize("seed", range(10))
def test_queues_of_one_message_and_a_large_fan_out_never_come_to_a_standstill(seed):
    builder = TopologyBuilder("test")
    builder.set_spout("spout", Numbers(60), parallelism=2)
    builder.set_bolt("wide", Identity(), parallelism=4).all_grouping("spout")
    builder.set_bolt("wider", Identity(), parallelism=3).all_grouping("wide")
    builder.set_bolt("join", AnchorAll(12), parallelism=1).shuffle_grouping("wider")
    builder.set_bolt("sink", Sink(), parallelism=2).all_grouping("join").all_grouping("wide")
    builder.set_acker_count(2)
    run = start(builder, seed=seed, receive_capacity=1)
    run.run_until_idle()
    assert sorted(run.acked("spout")) == list(range(60))
    assert len(run.emitted("wider")) == 60 * 4 * 3
