"""Spouts for users' tests: what is given is what is emitted, wherever they are shipped to."""

from __future__ import annotations

import pickle

import pytest

from coordinated_bolt import OutputFieldsDeclarer
from coordinator import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from state import SourceError, TopologyError
from tests.support.runs.whole_runs import Count0, run
from tests.support.stores.memory_store import MemoryStore
from tests.support.topologies.components import build

KINDS = [MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout]
FIELDS = ["line", "number"]
ROWS = [["a", 1], ["b", 2], ["c", 3]]


def counted(spout, tasks=2, store=None, **options):
    store = store or MemoryStore()
    return store, run(build(("count", Count0(), ["lines"]), spout=spout, spout_tasks=tasks), store, **options)


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
    counted(spout, tasks, store, commit_group_max=1)
    return sizes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitions", [{0: ROWS, 2: ROWS[:1]}, [ROWS, (), ROWS[:1]]], ids=["mapping", "list"])
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_every_row_of_every_partition_is_emitted_once(kind, partitions, tasks):
    store, coordinator = counted(kind(partitions, FIELDS, 2), tasks)
    assert store.states == {"counts0": {"a": 2, "b": 1, "c": 1, "all": 4}}
    assert coordinator.statistics.fraction == 1.0
    assert coordinator.statistics.committed == 2


@pytest.mark.parametrize("kind", KINDS)
def test_each_transaction_takes_so_many_rows_of_each_partition(kind):
    assert per_transaction(kind([ROWS, ROWS[:2], ROWS[:1]], FIELDS, 1)) == [3, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partitions", [{}, [], [[]], [[], []]], ids=["no mapping", "no list", "one", "two"])
def test_an_empty_input_has_no_transactions_unless_empty_ones_are_asked_for(kind, partitions):
    store, coordinator = counted(kind(partitions, FIELDS, 3))
    assert store.committed == []
    assert coordinator.statistics.fraction is None
    if partitions:
        store, _ = counted(kind(partitions, FIELDS, 3, empty_batches=2))
        assert store.committed_txid == 2


def odd_ones_away(attempt):
    return [0] if attempt.txid % 2 else []


@pytest.mark.parametrize(
    ("rows", "unavailable", "sizes"),
    [([ROWS], odd_ones_away, [0, 1, 0, 1, 0, 1]), ([ROWS, ROWS], {1: {1}, 2: {0, 1}, 5: {1, 9}}, [1, 0, 2, 2, 0, 1])],
    ids=["as a function of the attempt says", "in some transactions"],
)
def test_partitions_may_be_away(rows, unavailable, sizes):
    spout = OpaqueMemoryTransactionalSpout(rows, FIELDS, 1, unavailable=unavailable)
    assert per_transaction(spout, tasks=len(rows)) == sizes


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_transaction_k_emits_exactly_batch_k(tasks):
    spout = FixedBatchesSpout([ROWS, [], ROWS[:1]], FIELDS)
    assert per_transaction(spout, tasks) == [3, 0, 1]
    store, coordinator = counted(spout, tasks, max_spout_pending=2)
    assert store.states == {"counts0": {"a": 2, "b": 1, "c": 1, "all": 4}}
    assert (store.committed_txid, coordinator.statistics.fraction) == (3, 1.0)


def test_no_batches_are_no_transactions_and_others_go_on_after_the_last_committed_one():
    store, coordinator = counted(FixedBatchesSpout([], FIELDS))
    assert (store.committed, coordinator.statistics.fraction) == ([], None)
    store = MemoryStore()
    store.committed, store.metadata = [[1]], {"coordinator:1": [0, 0]}
    counted(FixedBatchesSpout([ROWS, ROWS[:1]], FIELDS), 1, store)
    assert store.states == {"counts0": {"a": 1, "all": 1}}


EVERY_KIND = [
    MemoryTransactionalSpout([ROWS], FIELDS, 1),
    OpaqueMemoryTransactionalSpout([ROWS], FIELDS, 1, unavailable={1: [0]}),
    FixedBatchesSpout([ROWS], FIELDS),
]


@pytest.mark.parametrize("spout", EVERY_KIND, ids=lambda spout: type(spout).__name__)
def test_a_spout_is_shipped_with_its_contents_and_its_stream_has_the_fields(spout):
    arrived = pickle.loads(pickle.dumps(spout))
    assert arrived.fingerprint() == spout.fingerprint()
    assert per_transaction(arrived) == per_transaction(spout)
    declarer = OutputFieldsDeclarer("lines")
    spout.declare_output_fields(declarer)
    assert declarer.streams["default"].fields == ("line", "number")


def test_another_input_has_another_fingerprint():
    spouts = [
        kind(partitions, FIELDS, take, empty_batches=empty)
        for kind in KINDS
        for partitions, take, empty in [([ROWS], 1, 0), ([ROWS], 2, 0), ([ROWS], 1, 1), ([ROWS, []], 1, 0)]
    ]
    fixed = [FixedBatchesSpout(batches, FIELDS) for batches in ([ROWS], [ROWS, ROWS], [ROWS[:2]])]
    fingerprints = [spout.fingerprint() for spout in [*spouts, *fixed]]
    assert len(set(fingerprints)) == len(fingerprints) == 11
    assert KINDS[0]([ROWS], FIELDS, 1).fingerprint() == fingerprints[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("changed", "story"),
    [
        ({"take": 0}, "take of .* is 0; give an integer of at least 1"),
        ({"take": True}, "take of .* is True"),
        ({"empty_batches": -1}, "empty_batches of .* is -1; give an integer of at least 0"),
        ({"fields": "line"}, r"takes a list of names, not 'line'; write \['line'\]"),
        ({"partitions": [["ab"]]}, "row 'ab' of .* must be a list of 2 values"),
        ({"partitions": [[["a"]]]}, r"row \['a'\] of .* must be a list of 2 values, one for each of its fields"),
        ({"partitions": {-1: ROWS}}, "a partition of .* is -1"),
        ({"partitions": {"0": ROWS}}, "a partition of .* is '0'"),
    ],
    ids=lambda part: "",
)
def test_a_parameter_that_is_no_good_is_refused(kind, changed, story):
    given = {"partitions": [ROWS], "fields": FIELDS, "take": 1} | changed
    with pytest.raises(TopologyError, match=story):
        kind(given.pop("partitions"), given.pop("fields"), given.pop("take"), **given)


def interrupted_after(transactions, spout, store):
    """Runs one transaction at a time, and ends like a driver that is killed when the next is to be committed."""
    store.replies = [None] * transactions + [OSError("pulled the plug")]
    with pytest.raises(OSError, match="plug"):
        counted(spout, 1, store, max_spout_pending=1)
    assert store.committed_txid == transactions


def gone_on(kind, before, transactions, after):
    """What is counted after some transactions of one input, then all of another."""
    store = MemoryStore()
    interrupted_after(transactions, kind(*before), store)
    counted(kind(*after), 1, store)
    return store.states["counts0"]["all"]


EIGHT = [[letter, 0] for letter in "abcdefgh"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transactions", [1, 2])
@pytest.mark.parametrize("take", [1, 2, 3, 5, 8])
def test_a_run_that_was_interrupted_goes_on_where_it_was_and_another_take_changes_nothing_of_that(
    kind, transactions, take
):
    assert gone_on(kind, ([EIGHT], FIELDS, 3), transactions, ([EIGHT], FIELDS, take)) == 8


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("before", "after", "take", "rows"),
    [([EIGHT[:5]], [EIGHT], 3, 8), ([EIGHT], [EIGHT, EIGHT[:3]], 1, 11)],
    ids=["rows in a partition that ended within a batch", "a partition"],
)
def test_what_is_added_after_the_end_is_read(kind, before, after, take, rows):
    store, _ = counted(kind(before, FIELDS, take), 1)
    counted(kind(after, FIELDS, take), 1, store)
    assert store.states["counts0"]["all"] == rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_added_before_the_end_is_read_to_its_own(kind):
    assert gone_on(kind, ([EIGHT], FIELDS, 3), 2, ([EIGHT, EIGHT], FIELDS, 3)) == 16


@pytest.mark.parametrize("kind", KINDS)
def test_rows_appended_after_empty_batches_are_read_and_followed_by_empty_ones(kind):
    store = MemoryStore()
    counted(kind([EIGHT[:2]], FIELDS, 1, empty_batches=2), 1, store)
    assert store.committed_txid == 4
    counted(kind([EIGHT[:3]], FIELDS, 1, empty_batches=2), 1, store)
    assert (store.states["counts0"]["all"], store.committed_txid) == (3, 7)


def test_a_replay_reads_what_was_cut_though_take_has_changed():
    store = MemoryStore()
    interrupted_after(1, MemoryTransactionalSpout([EIGHT], FIELDS, 3), store)
    assert "partition.0:2" in store.metadata, "cut, and not committed"
    counted(MemoryTransactionalSpout([EIGHT], FIELDS, 1), 1, store)
    assert store.states["counts0"]["all"] == 8
    assert store.committed_txid == 4, "3, again 3, and then one at a time"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("position", "story"),
    [
        (2, r"position 2 of partition 0 .* counted batches"),
        ([0, "x"], r"position \[0, 'x'\] of partition 0"),
        ([0, 9, 0, 0], "partition 0 .* has 8 rows but was read up to row 9"),
    ],
    ids=["former form", "nonsense", "beyond the end"],
)
def test_a_stored_position_that_means_nothing_here_is_refused_with_a_remedy(kind, position, story):
    store = MemoryStore()
    store.committed = [[1]]
    store.metadata = {"partition.0:1": position} | ({} if kind is KINDS[1] else {"coordinator:1": 1})
    with pytest.raises(SourceError, match=rf"{story}.*txbatch drop test"):
        counted(kind([EIGHT], FIELDS, 3), 1, store)
    assert store.states == {}


UNSENT = "which cannot be sent or stored: .*; give plain data"


@pytest.mark.parametrize(
    ("kind", "given", "named"),
    [
        (FixedBatchesSpout, ([ROWS, [["a"]]], FIELDS), r"row \['a'\] of FixedBatchesSpout must be a list of 2 values"),
        (
            FixedBatchesSpout,
            ([[[1, 2]], [[3, 4], [5, object()]]], ["a", "b"]),
            f"row 1 of batch 1 of Fixed.* 'b', {UNSENT}",
        ),
        (FixedBatchesSpout, ([[["\ud800", 2]]], ["a", "b"]), f"row 0 of batch 0 of Fixed.* 'a', {UNSENT}"),
        (KINDS[0], ([[], [[{1: {2}, 3: print}]]], ["a"], 1), f"row 0 of partition 1 of Memory.* 'a', {UNSENT}"),
        (KINDS[1], ([[[2j]]], ["a"], 1), f"row 0 of partition 0 of Opaque.* 'a', {UNSENT}"),
    ],
    ids=["short", "object", "text", "deep", "complex"],
)
def test_a_row_of_another_length_or_with_a_value_that_cannot_travel_is_refused_with_its_place_and_a_remedy(
    kind, given, named
):
    with pytest.raises(TopologyError, match=named):
        kind(*given)
