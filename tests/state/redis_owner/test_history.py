"""The history on every backend: what a commit forgets stays readable, as long as it is asked to, and no longer."""

from __future__ import annotations

from typing import Any

import pytest

from state.commits.commit import Commit
from state.errors import StateRefusedError
from state.keys import Keys
from state.records.transaction_history import KEPT_BYTES, parse_record
from state.records.transaction_story import TransactionStory
from state.redis_admin.pulse import PulseSender
from tests.support.stores.admin import admin_of, transaction_of
from tests.support.stores.builders import acquire, attempt, commit_of, counts

HISTORY = "{wc}:txbatch:history"


def kept(client: Any) -> list[int]:
    return sorted(int(txid) for txid in client.hkeys(HISTORY))


def group(first: int, last: int, *, history: int = 100, **more: Any) -> Commit:
    return commit_of(counts(a=1), *map(attempt, range(first, last + 1)), history=history, **more)


def test_metadata_that_a_commit_forgets_stays_with_its_transaction(store) -> None:
    store.store_metadata(
        {f"{scope}:{txid}": [scope, txid] for scope in ("coordinator", "partition.a b") for txid in (1, 2)}
    )
    store.commit(group(1, 2, forget=("coordinator:1", "partition.a b:1")))
    first, last = transaction_of(store, 1), transaction_of(store, 2)
    assert first.metadata == {"coordinator": ["coordinator", 1], "partition.a b": ["partition.a b", 1]}
    assert first.receipt is not None
    assert (first.receipt.attempt_id, first.receipt.first_txid, first.receipt.last_txid) == (1001, 1, 2)
    assert last.metadata == {"coordinator": ["coordinator", 2], "partition.a b": ["partition.a b", 2]}
    assert first.is_committed
    store.commit(group(3, 3, forget=("coordinator:2", "partition.a b:2")))
    assert transaction_of(store, 2).metadata == last.metadata


def test_bytes_and_line_breaks_are_kept_as_they_are(store) -> None:
    value = {"bytes": b"\n7 3\n\x00", "text": "a\nb"}
    store.store_metadata({"partition.x\n1 1:1": value})
    store.commit(group(1, 1))
    store.commit(group(2, 2, forget=("partition.x\n1 1:1",)))
    assert transaction_of(store, 1).metadata == {"partition.x\n1 1": value}


def test_metadata_that_is_too_long_is_left_out_and_said_to_be(store) -> None:
    store.store_metadata({"coordinator:1": "x" * KEPT_BYTES, "partition.0:1": 5})
    store.commit(group(1, 1))
    store.commit(group(2, 2, forget=("coordinator:1", "partition.0:1")))
    found = transaction_of(store, 1)
    assert found.metadata == {"partition.0": 5}
    assert found.left_out == {"coordinator": KEPT_BYTES + 3}


def test_notes_and_numbers_of_replays_are_no_part_of_a_transaction(store) -> None:
    store.store_metadata({"note.n:1": 1, "replayed:1": [1, 1], "coordinator:1": 2})
    store.commit(group(1, 1, forget=("note.n:1", "replayed:1", "coordinator:1")))
    assert transaction_of(store, 1).metadata == {"coordinator": 2}


def test_the_last_ones_are_kept(store, client) -> None:
    for txid in range(1, 8):
        store.commit(group(txid, txid, history=3))
    assert kept(client) == [5, 6, 7]
    store.commit(group(8, 15, history=3))
    assert kept(client) == [13, 14, 15]
    assert (transaction_of(store, 5).history_from, transaction_of(store, 5).is_forgotten) == (
        13,
        False,
    )  # its receipt is there


def test_fewer_are_kept_from_the_next_commit_on_and_none_if_so_asked(store, client) -> None:
    store.commit(group(1, 10, history=100))
    store.commit(group(11, 11, history=2))
    assert kept(client) == [10, 11]
    store.commit(group(12, 12, history=0))
    assert kept(client) == []
    store.commit(group(13, 13, history=2))
    assert kept(client) == [13]


def test_a_long_history_is_given_up_in_steps(store, client) -> None:
    for first in range(1, 2500, 500):
        store.commit(group(first, first + 499, history=10_000))
    store.commit(group(2501, 2501, history=1))
    assert len(kept(client)) == 2501 - 1001
    for txid in (2502, 2503):
        store.commit(group(txid, txid, history=1))
    assert kept(client) == [2503]


def test_a_transaction_that_is_not_committed_and_a_topology_that_is_not_there(open_store, client) -> None:
    store = open_store()
    assert admin_of(store).transaction(1) is None
    acquire(store)
    store.store_metadata({"coordinator:1": 7})
    assert (transaction_of(store, 1).metadata, transaction_of(store, 1).is_committed) == (
        {"coordinator": 7},
        False,
    )
    assert (transaction_of(store, 2).metadata, transaction_of(store, 2).receipt) == ({}, None)


def test_a_story_is_read_back(store) -> None:
    story = TransactionStory(tuples=3, first_txid=1, last_txid=1)
    store.commit(group(1, 1))
    PulseSender(store).send({}, [(1, story.to_json())], kept=5)
    assert transaction_of(store, 1).story == story


@pytest.mark.parametrize(
    "record",
    [b"", b"nonsense", b"0a d 1 1\nx", b"0a d 1 1\n3 900\nabc", b"0a d 1 1\n1 1\nx\xc1", b"\xff"],
    ids=["empty", "no receipt", "no lengths", "too short", "not packed", "not text"],
)
def test_a_record_that_cannot_be_read_is_refused_with_its_txid(record: bytes) -> None:
    with pytest.raises(StateRefusedError, match="the record of txid 9 in key"):
        parse_record(Keys("wc"), 9, record)
