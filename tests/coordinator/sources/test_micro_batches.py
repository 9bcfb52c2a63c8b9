"""Which micro-batch may become which transaction, decided without Spark and without a server."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import pytest

from coordinator import FixedBatchesSpout, FormerInput, LocalCluster, TransactionalTopologyBuilder, exactly_once
from coordinator.sources.micro_batches import MicroBatch, MicroBatchCoordinator, MicroBatches, fingerprint_of
from state import SourceError, TopologyError
from state.troubles import Trouble
from tests.support.approved import approved, refusals
from tests.support.sources.reading import standing
from tests.support.topologies.components import Sink

QUERY, OTHER = "1111-aaaa", "2222-bbbb"


def batch(batch_id: int, plan_digest: int = 0, query_id: str = QUERY) -> MicroBatch:
    return MicroBatch(query_id, batch_id, plan_digest or 100 + batch_id)


def coordinator(last: MicroBatch | None, last_txid: int, *, first_batch_id: int = 0) -> MicroBatchCoordinator:
    """One that was told where earlier runs have stopped."""
    made = MicroBatchCoordinator(QUERY, "clicks", first_batch_id)
    standing(made, last_txid, None if last is None else last.to_plain()).resume()
    return made


def topology(spout):
    builder = TransactionalTopologyBuilder("clicks", "rows", spout)
    builder.set_bolt("take", Sink()).shuffle_grouping("rows")
    return builder.build()


def test_batch_n_is_transaction_n_plus_one():
    source = coordinator(None, 0)
    for number in range(3):
        assert source.txid_of(batch(number), committed_txid=number) == number + 1
        assert source.is_ready()
        assert source.initialize_transaction(number + 1, None) == batch(number).to_plain()
        assert not source.is_ready()


@pytest.mark.parametrize("committed_txid", [7, 6], ids=["committed", "cut and not committed"])
def test_a_repeated_batch_is_the_transaction_it_was_and_is_cut_no_more(committed_txid):
    source = coordinator(batch(6), 7)
    assert source.txid_of(batch(6), committed_txid=committed_txid) == 7
    assert not source.is_ready()


def test_a_query_that_starts_late_counts_its_transactions_from_one():
    source = coordinator(None, 0, first_batch_id=40)
    assert source.txid_of(batch(40), committed_txid=0) == 1
    source.initialize_transaction(1, None)
    assert source.txid_of(batch(41), committed_txid=1) == 2


UNFIT: dict[str, tuple[MicroBatch | None, int, int, MicroBatch]] = {
    "not the first": (None, 0, 0, batch(3)),
    "not the next": (batch(6), 7, 7, batch(8)),
    "the next, while one is not committed": (batch(6), 7, 6, batch(7)),
    "an old one": (batch(6), 7, 7, batch(0)),
    "planned again": (batch(6), 7, 7, batch(6, 999)),
    "planned again, and not committed": (batch(6), 7, 6, batch(6, 999)),
}


def test_what_neither_follows_nor_repeats_is_refused_by_name():
    sources = {name: coordinator(last, last_txid) for name, (last, last_txid, *_) in UNFIT.items()}
    cases = {
        name: partial(sources[name].txid_of, given, committed_txid)
        for name, (_, _, committed_txid, given) in UNFIT.items()
    }
    approved(refusals(cases, SourceError), "micro-batches-that-do-not-fit")
    assert not any(source.is_ready() for source in sources.values())


def test_another_query_is_said_to_skip_and_to_read_again_and_cannot_repeat_a_batch_that_is_not_committed():
    last = batch(6, query_id=OTHER).to_plain()
    former = FormerInput(fingerprint=fingerprint_of(OTHER), is_same=False, last_txid=7, last=last)
    change = coordinator(None, 0).compare(former)
    assert change.skipped == (
        f"whatever came after batch 6 of streaming query {OTHER} and before where query {QUERY} begins to read",
    )
    assert change.again == (
        f"whatever query {QUERY} reads that was in batches up to batch 6 of streaming query {OTHER}",
    )
    assert coordinator(None, 0).compare(replace(former, pending=(last,))).impossible == (
        f"batch 6 of streaming query {OTHER} is begun and not committed, and only that query can repeat it",
    )


def test_a_query_that_was_accepted_begins_with_its_own_first_batch():
    source = coordinator(batch(6, query_id=OTHER), 7)
    assert source.txid_of(batch(0), committed_txid=7) == 8


def test_metadata_of_another_kind_of_spout_is_refused():
    with pytest.raises(SourceError, match="was run with another kind of spout before") as refused:
        standing(MicroBatchCoordinator(QUERY, "clicks"), 3, [["a.txt", 0, 9]]).resume()
    assert refused.value.trouble is Trouble.OTHER_SOURCE


def test_a_shipped_spout_leaves_its_coordinator_on_the_driver():
    bound = MicroBatches(["page"]).bound(coordinator(None, 0))
    assert bound.fingerprint() == fingerprint_of(QUERY)
    assert pickle.loads(pickle.dumps(bound)).fingerprint() == fingerprint_of("?")


@pytest.mark.parametrize("columns", ["page", [], [""], ["page", "page"], [1]])
def test_columns_are_different_names(columns):
    with pytest.raises(TopologyError, match="columns of MicroBatches is"):
        MicroBatches(columns)


def test_a_topology_over_micro_batches_runs_only_through_the_bridge_which_refuses_others_and_a_wrong_first_batch():
    with LocalCluster() as cluster, pytest.raises(TopologyError, match=r"call exactly_once\(topology\)"):
        cluster.submit(topology(MicroBatches(["page"])))
    with pytest.raises(TopologyError, match=r"give MicroBatches\(columns\) as the spout"):
        exactly_once(topology(FixedBatchesSpout([[["a"]]], ["page"])))
    with pytest.raises(TopologyError, match="first_batch_id is -1; give the number of a batch"):
        exactly_once(topology(MicroBatches(["page"])), first_batch_id=-1)
