"""What a dashboard reads of a server, on every backend: whole, in order, and without changing anything."""

from __future__ import annotations

import pytest

from coordinator.watching.failure_cause import FailureCause
from state.errors import StateRefusedError, StateUnreachableError, TopologyError
from state.keys import Keys
from state.records.run_pulse import Standing
from state.records.topology_overview import TopologyOverview, TransactionPage
from state.records.transaction_history import RECEIPTS_KEPT
from state.records.transaction_story import LOWER_FAILED, StoryChoice
from state.redis_admin.topology_reader import TopologyReader, reader_at
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.dashboard.opened import AT, reader_of
from tests.support.dashboard.stored import RUN, failed_story, samples, store_topology, story
from tests.support.stores.builders import attempt, commit_of, counts, dump, owner_on

READER = ("ACL", "SETUSER", "reader", "on", "nopass", "~*", "resetchannels", "-@all", "+@read", "+info", "+client|list")


@pytest.fixture
def client(backend: Backend):
    return backend.client()


@pytest.fixture
def looking(client) -> TopologyReader:
    return reader_of(client)


def page_of(looking: TopologyReader, **asked) -> TransactionPage:
    page = looking.transactions("words", **asked)
    assert page is not None
    return page


def txids(looking: TopologyReader, **asked) -> list[int]:
    return [row.txid for row in page_of(looking, **asked).rows]


def seen_by(looking: TopologyReader) -> TopologyOverview:
    seen = looking.overview("words")
    assert seen is not None
    return seen


class TestOverview:
    def test_a_topology_is_read_whole(self, client, looking) -> None:
        store_topology(client, "words", told=samples(5), history=range(3, 43), letters=2, quarantined=1)
        seen = seen_by(looking)
        assert (seen.topology_id, seen.at, seen.committed_txid, seen.fence) == ("words", AT, 42, "1:ab")
        assert (seen.history_from, seen.dead_letters, seen.quarantined_count) == (3, 2, 1)
        assert (seen.durable, seen.source_fingerprint, seen.is_dropping) == ({"fsync": 42}, "files:/data/*.txt", False)
        assert seen.pulse is not None
        assert (seen.pulse.run, len(seen.pulse.samples)) == (RUN, 5)
        assert seen.standing is Standing.RUNNING
        assert seen.gives.can_lose().startswith(("everything", "its last"))

    def test_a_pulse_of_a_run_that_lost_the_topology_is_not_shown(self, client, looking) -> None:
        store_topology(client, "words")
        client.hset(Keys("words").control, "fence", "2:cd")
        seen = seen_by(looking)
        assert seen.pulse is None
        assert seen.standing is Standing.UNKNOWN

    def test_what_is_not_stored_is_none(self, looking) -> None:
        assert looking.overview("words") is None
        assert looking.transactions("words") is None
        assert looking.transaction("words", 1) is None

    def test_a_name_that_is_not_one_is_refused(self, looking) -> None:
        with pytest.raises(TopologyError, match="topology id 'a b' is not a valid name"):
            looking.overview("a b")

    def test_a_key_of_another_type_is_refused(self, client, looking) -> None:
        client.set(Keys("words").control, "text")
        with pytest.raises(StateRefusedError, match="WRONGTYPE"):
            looking.overview("words")

    def test_a_control_record_that_is_damaged_is_refused(self, client, looking) -> None:
        store_topology(client, "words")
        client.hset(Keys("words").control, "committed", "forty")
        with pytest.raises(StateRefusedError, match=r"field 'committed' of key .* holds 'forty', which is not a whole"):
            looking.overview("words")


class TestTransactions:
    def test_they_are_read_page_by_page_the_newest_first(self, client, looking) -> None:
        store_topology(client, "words", committed=7, stories={n: story(n) for n in range(1, 8)}, history=range(1, 8))
        page = page_of(looking, limit=3)
        assert ([row.txid for row in page.rows], page.next_before) == ([7, 6, 5], 5)
        assert (page.committed_txid, page.first_kept) == (7, 1)
        receipt, told = page.rows[0].receipt, page.rows[0].story
        assert receipt is not None
        assert (receipt.attempt_id, receipt.first_txid, told) == (1007, 7, story(7))
        assert txids(looking, before=5, limit=3) == [4, 3, 2]
        last = page_of(looking, before=2, limit=3)
        assert ([row.txid for row in last.rows], last.next_before) == ([1], None)
        assert txids(looking, before=1) == []

    def test_some_are_chosen_by_what_was_told(self, client, looking) -> None:
        stories = {txid: story(txid) for txid in range(1, 21)}
        stories |= {4: failed_story(4), 9: failed_story(9, LOWER_FAILED), 12: story(12, set_aside=True)}
        store_topology(client, "words", committed=20, stories=stories)
        assert txids(looking, choice=StoryChoice.FAILED) == [4]
        assert txids(looking, choice=StoryChoice.REPLAYED) == [9, 4]
        assert txids(looking, choice=StoryChoice.SET_ASIDE) == [12]
        page = page_of(looking, choice=StoryChoice.REPLAYED, limit=1)
        assert page.next_before == 9
        assert txids(looking, choice=StoryChoice.REPLAYED, before=9, limit=1) == [4]

    def test_a_story_that_cannot_be_read_is_not_told(self, client, looking) -> None:
        store_topology(client, "words", committed=2, stories={1: story(1)}, history=[1, 2])
        client.hset(Keys("words").stories, "2", "{")
        page = page_of(looking)
        assert [row.story for row in page.rows] == [None, story(1)]
        assert txids(looking, choice=StoryChoice.REPLAYED) == []

    def test_without_history_and_stories_the_last_ones_are_listed(self, client, looking) -> None:
        store_topology(client, "words", run=None, committed=5_000)
        page = page_of(looking, limit=2)
        assert ([row.txid for row in page.rows], page.first_kept) == ([5_000, 4_999], 5_000 - RECEIPTS_KEPT + 1)

    def test_nothing_is_listed_before_the_first_commit(self, client, looking) -> None:
        store_topology(client, "words", run=None, committed=0)
        page = page_of(looking)
        assert (page.rows, page.first_kept) == ((), 1)


class TestAside:
    def test_dead_letters_are_read_page_by_page_the_newest_first(self, client, looking) -> None:
        store_topology(client, "words", letters=5)
        page = looking.letters("words", limit=2)
        assert ([letter.letter_id for letter in page.letters], page.stored_count) == (["21.0", "20.0"], 5)
        assert [letter.letter_id for letter in looking.letters("words", offset=4, limit=2).letters] == ["17.0"]
        assert looking.letters("gone").letters == ()

    def test_the_quarantine_is_read_by_txid(self, client, looking) -> None:
        store_topology(client, "words", quarantined=3)
        assert [record.txid for record in looking.quarantined("words")] == [30, 31, 32]
        assert looking.quarantined("gone") == []


class TestOnARealServer:
    """What only a real server shows: rights, and a run's own writes."""

    pytestmark = pytest.mark.redis

    @pytest.fixture
    def store(self, redis_backend: Backend):
        store = owner_on(redis_backend.url, "words", topology="graph", source_fingerprint="files")
        store.commit(commit_of(counts(a=1), attempt(1)))
        yield store
        store.close()

    def test_a_user_who_may_only_read_sees_everything(self, redis_backend: Backend, store: RedisStore) -> None:
        owner = redis_backend.client()
        store_topology(owner, "told", stories={42: story(42)}, history=range(1, 43), letters=2, quarantined=1)
        before = dump(owner)
        owner.execute_command(*READER)
        looking = reader_of(redis_backend.client(username="reader", password="none"))
        for topology_id in ("words", "told"):
            assert looking.overview(topology_id) is not None
            assert looking.transactions(topology_id, choice=StoryChoice.FAILED) is not None
            assert looking.transaction(topology_id, 1) is not None
            looking.letters(topology_id)
            looking.quarantined(topology_id)
        assert len(looking.topologies()) == 2
        assert dump(owner) == before
        owner.execute_command("ACL", "DELUSER", "reader")


def test_a_server_that_is_away_is_said_at_once() -> None:
    looking = reader_at("redis://127.0.0.1:1/0")
    with pytest.raises(StateUnreachableError, match="did not answer"):
        looking.topologies()


def test_a_dropped_attempt_is_called_as_runs_call_it() -> None:
    assert FailureCause.LOWER_FAILED.words == LOWER_FAILED
