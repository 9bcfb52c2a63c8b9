"""A transaction that leads a number out of its range is refused whatever the size of the group it is committed in.

Whole runs, against the function library itself: with groups of 1, 2, 7 and 64 the same transactions are committed,
the state is the same, and the run ends with the same sentence.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from coordinator import FixedBatchesSpout, LocalCluster, RunOptions, TransactionalTopologyBuilder
from state import HashState, SortedSetState, StateRefusedError, ValueState
from state.values.state_kind import MAX_INTEGER
from tests.support.runs.collecting import Collecting

SIZES = (1, 2, 7, 64)
HUGE = sys.float_info.max


class Keeper(Collecting):
    whole = HashState("whole", value=int)
    parts = HashState("parts", value=float)
    single = ValueState("single", value=int)
    scores = SortedSetState("scores")

    def finish_batch(self):
        for state, method, *arguments in self.column("step"):
            getattr(getattr(self, state), method)(*arguments)


def outcome(transactions, size, *, parallelism=1, stored=()):
    """Last committed txid, all state, and what the run ended with."""
    builder = TransactionalTopologyBuilder("limits", "steps", FixedBatchesSpout(transactions, ("key", "step")))
    builder.set_committer_bolt("keep", Keeper(), parallelism=parallelism).shuffle_grouping("steps")
    with LocalCluster() as cluster:
        for key, value in stored:
            cluster.client.hset("{limits}:whole", key, value)
        options = RunOptions(max_spout_pending=64, commit_group_max=size, accept_state_changes=True)
        run = cluster.submit(builder.build(), options=options)
        try:
            run.run_until_idle()
            ended = "done"
        except StateRefusedError as error:
            ended = re.sub(r"(\d+):[0-9a-f]+", r"\1", str(error))
        hashes = [sorted(cluster.client.hgetall(f"{{limits}}:{name}").items()) for name in ("whole", "parts")]
        scores = cluster.client.zrange("{limits}:scores", 0, -1, withscores=True)
        states = [*hashes, cluster.client.get("{limits}:single"), scores]
        return cluster.client.hget("{limits}:txbatch:control", "committed"), states, ended


def batches(*transactions):
    return [[(step[2] if len(step) > 3 else "", step) for step in steps] for steps in transactions]


def agreed(transactions, **given):
    first, *others = [outcome(transactions, size, **given) for size in SIZES]
    for size, other in zip(SIZES[1:], others, strict=True):
        assert other == first, f"group size {size}"
    return first


def whole(by):
    return [("whole", "increment", "a", by)]


def test_increments_up_to_the_limit_and_back_are_committed():
    committed, states, ended = agreed(batches(whole(MAX_INTEGER), whole(-MAX_INTEGER), whole(-MAX_INTEGER), whole(7)))
    assert (committed, ended) == (b"4", "done")
    assert states[0] == [(b"a", b"%d" % (7 - MAX_INTEGER))]


def test_numbers_near_the_limit_that_no_transaction_leads_beyond_it_are_committed():
    committed, _, ended = agreed(batches(*[whole(n) for n in (1, -1, 2, -2, 3)]), stored=[("a", MAX_INTEGER - 3)])
    assert (committed, ended) == (b"5", "done")


UP, DOWN = ("parts", "increment", "a", HUGE), ("parts", "increment", "a", -HUGE)
TO_THE_LIMIT, TO_ZERO = ("whole", "put", "a", MAX_INTEGER), ("parts", "put", "a", 0.0)
VOIDING = [("whole", "put", "a", 1), ("whole", "delete", "a")]
ONE_OF_B = [("whole", "increment", "b", 1)]
REFUSED: dict[str, tuple[list[Any], Any]] = {
    "increments that cancel within a group": ([whole(MAX_INTEGER), whole(MAX_INTEGER), whole(-MAX_INTEGER)], None),
    "increments that cancel on a stored number": ([whole(5), whole(10), whole(-10)], MAX_INTEGER - 9),
    **{
        f"increments of {stored} that a later {after[1]} makes void": (
            [ONE_OF_B, whole(-1 if stored == -MAX_INTEGER else 1), [after]],
            stored,
        )
        for after in VOIDING
        for stored in (MAX_INTEGER, -MAX_INTEGER, "not a number")
    },
    "a number that was put and led beyond": ([[TO_THE_LIMIT], whole(1), whole(-1)], None),
    "what one transaction puts beyond, though a later one puts something else": (
        [whole(1), [TO_THE_LIMIT, *whole(1)], [("whole", "put", "a", 0)]],
        None,
    ),
    "floats through infinity and back": ([[UP], [UP], [DOWN]], None),
    "floats through infinity that are put": ([[UP], [UP], [TO_ZERO]], None),
    "floats through infinity that are deleted": ([[UP], [UP], [("parts", "delete", "a")]], None),
    "floats beyond the finite numbers within one transaction": ([whole(1), [UP, UP], [TO_ZERO]], None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_transaction_leads_beyond_a_limit_is_refused_as_alone(name):
    transactions, stored = REFUSED[name]
    committed, _, ended = agreed(batches(*transactions), stored=[] if stored is None else [("a", stored)])
    assert committed == b"1"
    assert "transaction 2 was refused" in ended
    if name == "increments that cancel within a group":
        assert "transaction 2 was refused: state key '{limits}:whole' field 'a' would leave" in ended


near = st.sampled_from([MAX_INTEGER, -MAX_INTEGER, MAX_INTEGER - 1, 2**52, -(2**52)]) | st.integers(-3, 3)
wide = st.sampled_from([HUGE, -HUGE, HUGE / 2, -HUGE / 2, 1e300, -1e300, 0.1, 1.0])
name = st.sampled_from("ab")
steps = st.one_of(
    st.tuples(st.just("whole"), st.just("increment"), name, near),
    st.tuples(st.just("whole"), st.just("put"), name, near),
    st.tuples(st.just("whole"), st.just("delete"), name),
    st.tuples(st.just("parts"), st.just("increment"), name, wide),
    st.tuples(st.just("parts"), st.just("put"), name, wide),
    st.tuples(st.just("parts"), st.just("delete"), name),
    st.tuples(st.just("single"), st.just("increment"), near),
    st.tuples(st.just("single"), st.just("put"), near),
    st.tuples(st.just("single"), st.just("delete")),
    st.tuples(st.just("scores"), st.just("increment"), name, wide),
    st.tuples(st.just("scores"), st.just("put"), name, wide),
    st.tuples(st.just("scores"), st.just("remove"), name),
)


@settings(max_examples=40)
@given(
    st.lists(st.lists(steps, max_size=3), min_size=2, max_size=9),
    st.integers(1, 2),
    st.sampled_from([(), [("a", MAX_INTEGER)], [("a", 2 - MAX_INTEGER), ("b", 7)], [("b", "seven")]]),
)
def test_any_transactions_end_alike_whatever_the_size_of_their_groups(transactions, parallelism, stored):
    _, _, ended = agreed(batches(*transactions), parallelism=parallelism, stored=stored)
    event("done" if ended == "done" else "refused")
