"""Quarantined batches on every backend: set aside with an empty commit, taken by a replay, dropped by an operator."""

from __future__ import annotations

from state.commits.commit import Commit, CommitStatus
from state.commits.quarantine import RepublishedQuarantine, SetAside
from state.commits.write_set import WriteSet
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import attempt, counts, dump, record_of, unanswered, unchanged

KEY = "{wc}:txbatch:quarantine"


def set_aside(txid: int, limit: int = 10) -> Commit:
    return Commit((attempt(txid),), WriteSet(), {"coordinator:1": txid}, quarantine=SetAside(record_of(txid), limit))


def replay(of: int, txid: int) -> Commit:
    return Commit((attempt(txid),), counts(a=5), quarantine=RepublishedQuarantine(of))


class TestSettingAside:
    def test_the_transaction_is_committed_empty_together_with_its_record(self, store, client):
        assert store.commit(set_aside(1)).status is CommitStatus.OK
        assert store.quarantined() == [record_of(1)]
        status = overview_of(store)
        assert (status.committed_txid, status.quarantined_count, status.metadata_count) == (1, 1, 1)
        assert all(key.startswith(b"{wc}:txbatch:") for key in dump(client)), "no state was written"

    def test_the_same_commit_again_answers_already_and_adds_nothing(self, store, client):
        with unanswered(store):
            store.commit(set_aside(1, limit=1))
        with unchanged(client):
            assert store.commit(set_aside(1, limit=1)).status is CommitStatus.ALREADY

    def test_a_full_quarantine_refuses_and_changes_nothing(self, store, client):
        for txid in (1, 2):
            store.commit(set_aside(txid, limit=2))
        with unchanged(client):
            reply = store.commit(set_aside(3, limit=2))
            assert (reply.status, reply.detail) == (CommitStatus.FULL, "2")


class TestReplaying:
    def test_the_record_goes_with_the_commit_that_publishes_it(self, store, client):
        store.commit(set_aside(1))
        assert store.commit(replay(1, 2)).status is CommitStatus.OK
        assert store.quarantined() == []
        assert client.hgetall("{wc}:counts") == {b"a": b"5"}

    def test_a_batch_that_was_dropped_meanwhile_is_not_published(self, store, client):
        store.commit(set_aside(1))
        assert admin_of(store).discard(record_of(1))
        with unchanged(client):
            reply = store.commit(replay(1, 2))
            assert (reply.status, reply.detail) == (CommitStatus.GONE, "1")

    def test_a_batch_that_was_replayed_cannot_be_replayed_by_a_later_commit(self, store, client):
        store.commit(set_aside(1))
        store.commit(replay(1, 2))
        assert store.commit(replay(1, 3)).status is CommitStatus.GONE
        assert client.hgetall("{wc}:counts") == {b"a": b"5"}


class TestDropping:
    def test_a_drop_removes_that_record_once_and_no_other(self, store):
        for txid in (1, 2):
            store.commit(set_aside(txid))
        assert [admin_of(store).discard(record_of(2)) for _ in range(2)] == [True, False]
        assert store.quarantined() == [record_of(1)]

    def test_another_batch_in_its_place_stays(self, store):
        store.commit(set_aside(1))
        assert not admin_of(store).discard(record_of(1, metadata="another"))
        assert store.quarantined() == [record_of(1)]
