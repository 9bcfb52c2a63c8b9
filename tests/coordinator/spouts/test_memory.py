"""Spouts for users' tests: what is given is what is emitted, wherever they are shipped to."""

from __future__ import annotations

import pickle

import pytest

from coordinated_bolt import OutputFieldsDeclarer
from coordinator import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from state import TopologyError
from tests.committers.memory_store import MemoryStore
from tests.coordinator.components import build
from tests.coordinator.test_whole_runs import Count0, run

KINDS = [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout]
ROWS = [["a", 1], ["b", 2], ["c", 3]]


def counted(spout, tasks=2, **options):
    store = MemoryStore()
    coordinator = run(build(("count", Count0(), ["lines"]), spout=spout, spout_tasks=tasks), store, **options)
    return store, coordinator


def per_transaction(spout, tasks=1):
    """What each transaction has added."""
    sizes, before = [], 0
    store = MemoryStore()
    publish = store.publish

    def noted(attempts, write_set):
        nonlocal before
        publish(attempts, write_set)
        total = store.states.get("counts0", {}).get("all", 0)
        sizes.append(total - before)
        before = total

    store.publish = noted  # type: ignore[method-assign]
    run(build(("count", Count0(), ["lines"]), spout=spout, spout_tasks=tasks), store, commit_group_max=1)
    return sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitions", [{0: ROWS, 2: ROWS[:1]}, [ROWS, (), ROWS[:1]]], ids=["mapping", "list"])
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_every_row_of_every_partition_is_emitted_once(kind, partitions, tasks):
    store, coordinator = counted(kind(partitions, ["line", "number"], 2), tasks)
    assert store.states == {"counts0": {"a": 2, "b": 1, "c": 1, "all": 4}}
    assert coordinator.statistics.fraction == 1.0
    assert coordinator.statistics.committed == 2


@pytest.mark.parametrize("kind", KINDS)
def test_each_transaction_takes_so_many_rows_of_each_partition(kind):
    assert per_transaction(kind([ROWS, ROWS[:2], ROWS[:1]], ["line", "number"], 1)) == [3, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitions", [{}, [], [[]], [[], []]], ids=["no mapping", "no list", "one", "two"])
def test_an_empty_input_has_no_transactions_unless_empty_ones_are_asked_for(kind, partitions):
    store, coordinator = counted(kind(partitions, ["line", "number"], 3))
    assert store.committed == []
    assert coordinator.statistics.fraction is None
    if partitions:
        store, _ = counted(kind(partitions, ["line", "number"], 3, empty_batches=2))
        assert store.committed_txid == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_interrupted_goes_on_where_it_was(kind):
    spout = kind([ROWS], ["line", "number"], 1)
    built = build(("count", Count0(), ["lines"]), spout=spout)
    store = MemoryStore()
    store.replies = [None, OSError("pulled the plug")]
    with pytest.raises(OSError, match="plug"):
        run(built, store, max_spout_pending=1)
    run(built, store, max_spout_pending=1)
    assert store.states == {"counts0": {"a": 1, "b": 1, "c": 1, "all": 3}}


def odd_ones_away(attempt):
    return [0] if attempt.txid % 2 else []


def test_partitions_may_be_away_as_a_function_of_the_attempt_says():
    spout = OpaqueMemoryTransactionalSpout([ROWS], ["line", "number"], 1, unavailable=odd_ones_away)
    assert per_transaction(spout) == [0, 1, 0, 1, 0, 1]


def test_partitions_may_be_away_in_some_transactions():
    spout = OpaqueMemoryTransactionalSpout(
        [ROWS, ROWS], ["line", "number"], 1, unavailable={1: {1}, 2: {0, 1}, 5: {1, 9}}
    )
    assert per_transaction(spout, tasks=2) == [1, 0, 2, 2, 0, 1]


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_transaction_k_emits_exactly_batch_k(tasks):
    spout = FixedBatchesSpout([ROWS, [], ROWS[:1]], ["line", "number"])
    assert per_transaction(spout, tasks) == [3, 0, 1]
    store, coordinator = counted(spout, tasks, max_spout_pending=2)
    assert store.states == {"counts0": {"a": 2, "b": 1, "c": 1, "all": 4}}
    assert (store.committed_txid, coordinator.statistics.fraction) == (3, 1.0)


def test_no_batches_are_no_transactions():
    store, coordinator = counted(FixedBatchesSpout([], ["line", "number"]))
    assert (store.committed, coordinator.statistics.fraction) == ([], None)


def test_fixed_batches_go_on_after_the_last_committed_one():
    store = MemoryStore()
    store.committed, store.metadata = [[1]], {"coordinator:1": None}
    run(build(("count", Count0(), ["lines"]), spout=FixedBatchesSpout([ROWS, ROWS[:1]], ["line", "number"])), store)
    assert store.states == {"counts0": {"a": 1, "all": 1}}


EVERY_KIND = [
    MemoryTransactionalSpout([ROWS], ["line", "number"], 1),
    OpaqueMemoryTransactionalSpout([ROWS], ["line", "number"], 1, unavailable={1: [0]}),
    FixedBatchesSpout([ROWS], ["line", "number"]),
]


@pytest.mark.parametrize("spout", EVERY_KIND, ids=lambda spout: type(spout).__name__)
def test_a_spout_is_shipped_with_its_contents(spout):
    arrived = pickle.loads(pickle.dumps(spout))
    assert arrived.fingerprint() == spout.fingerprint()
    assert per_transaction(arrived) == per_transaction(spout)


@pytest.mark.parametrize("spout", EVERY_KIND, ids=lambda spout: type(spout).__name__)
def test_its_stream_has_the_fields(spout):
    declarer = OutputFieldsDeclarer("lines")
    spout.declare_output_fields(declarer)
    assert declarer.streams["default"].fields == ("line", "number")


def test_another_input_has_another_fingerprint():
    spouts = [
        kind(partitions, ["line", "number"], take, empty_batches=empty)
        for kind in KINDS
        for partitions, take, empty in [([ROWS], 1, 0), ([ROWS], 2, 0), ([ROWS], 1, 1), ([ROWS, []], 1, 0)]
    ]
    fixed = [FixedBatchesSpout(batches, ["line", "number"]) for batches in ([ROWS], [ROWS, ROWS], [ROWS[:2]])]
    fingerprints = [spout.fingerprint() for spout in [*spouts, *fixed]]
    assert len(set(fingerprints)) == len(fingerprints) == 11
    assert KINDS[0]([ROWS], ["line", "number"], 1).fingerprint() == fingerprints[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changed", "story"),
    [
        ({"take": 0}, "take of .* is 0; give an integer from 1"),
        ({"take": True}, "take of .* is True"),
        ({"empty_batches": -1}, "empty_batches of .* is -1; give an integer from 0"),
        ({"fields": "line"}, r"takes a list of names, not 'line'; write \['line'\]"),
        ({"partitions": [["ab"]]}, "row 'ab' of .* is not a list of 2 values"),
        ({"partitions": [[["a"]]]}, r"row \['a'\] of .* is not a list of 2 values, as its fields"),
        ({"partitions": {-1: ROWS}}, "a partition of .* is -1"),
        ({"partitions": {"0": ROWS}}, "a partition of .* is '0'"),
    ],
    ids=lambda part: "",
)
def test_a_parameter_that_is_no_good_is_refused(kind, changed, story):
    given = {"partitions": [ROWS], "fields": ["line", "number"], "take": 1} | changed
    with pytest.raises(TopologyError, match=story):
        kind(given.pop("partitions"), given.pop("fields"), given.pop("take"), **given)


def test_a_row_of_a_fixed_batch_has_as_many_values_as_there_are_fields():
    with pytest.raises(TopologyError, match=r"row \['a'\] of FixedBatchesSpout is not a list of 2 values"):
        FixedBatchesSpout([ROWS, [["a"]]], ["line", "number"])
