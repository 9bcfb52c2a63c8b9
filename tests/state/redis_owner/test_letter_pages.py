"""Dead letters on every backend: committed with their transaction, bounded, read page by page, dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from state import SortedSetState
from state.commits.commit import CommitStatus
from state.commits.dead_letters import DEAD_LETTERS_STATE, add_letters
from state.commits.write_set import WriteSet
from state.errors import StateRefusedError, TopologyError
from state.redis_owner.letter_pages import RedisDeadLetters
from state.redis_owner.store import RedisStore
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import attempt, commit_of, counts, dump, packed_letter, unanswered, unchanged

KEY = "{wc}:txbatch:dead_letters"


def with_letters(
    values_of: Mapping[int, Sequence[object]], total: int = 1_000_000, taken: Sequence[bytes] = (), **increments: int
) -> WriteSet:
    write_set = counts(**increments)
    letters = [(txid, [(1, list(map(packed_letter, values)))]) for txid, values in values_of.items()]
    add_letters(write_set, letters, total, taken=taken)
    return write_set


def commit(store: RedisStore, first: int, *counted: int, total: int = 1_000_000) -> Any:
    """Commits a group from `first`, whose transactions refuse so many tuples each."""
    values_of = {first + place: [f"{first + place}/{n}" for n in range(count)] for place, count in enumerate(counted)}
    attempts = [attempt(txid) for txid in values_of]
    return store.commit(commit_of(with_letters(values_of, total, done=len(counted)), *attempts))


def read_all(letters: RedisDeadLetters, limit: int) -> list[str]:
    found: list[str] = []
    after = None
    for _ in range(1_000):
        page = letters.page(after=after, limit=limit)
        assert len(page.letters) <= limit
        found += [one["line"] for one in page.letters]
        if page.is_last:
            return found
        after = (page.letters[-1].txid, page.letters[-1].number)
    raise AssertionError("paging does not end")


def test_letters_and_state_become_visible_together_and_once(store: RedisStore, client: Any) -> None:
    with unanswered(store):
        assert commit(store, 1, 2).status is CommitStatus.OK
    with unchanged(client):
        assert commit(store, 1, 2).status is CommitStatus.ALREADY
    page = store.dead_letters.page()
    assert (page.committed_txid, page.stored_count, page.is_last) == (1, 2, True)
    assert [(one.letter_id, one["line"], one.reason) for one in page.letters] == [
        ("1.0", "1/0", "bad"),
        ("1.1", "1/1", "bad"),
    ]
    assert client.hget("{wc}:counts", "done") == b"1"


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_any_size_give_every_letter_once_and_in_order(store: RedisStore, limit: int) -> None:
    commit(store, 1, 3, 0, 1, 12, 2)
    commit(store, 6, 0, 5)
    expected = [f"{txid}/{n}" for txid, count in [(1, 3), (3, 1), (4, 12), (5, 2), (7, 5)] for n in range(count)]
    assert read_all(store.dead_letters, limit) == expected
    assert [one["line"] for one in store.dead_letters.all()] == expected
    assert [one["line"] for one in store.dead_letters.all(until_txid=3)] == expected[:4]


def test_a_reading_in_pages_leaves_out_what_is_committed_meanwhile(store: RedisStore) -> None:
    commit(store, 1, 150, 150)
    reading = store.dead_letters.all()
    next(reading)
    commit(store, 3, 4)
    assert len(list(reading)) == 299
    assert store.dead_letters.page().stored_count == 304


@pytest.mark.parametrize("total", [3, 4])
def test_a_group_that_would_exceed_the_limit_is_refused_before_anything_changes(
    store: RedisStore, client: Any, total: int
) -> None:
    assert commit(store, 1, 2, total=total).status is CommitStatus.OK
    with unchanged(client):
        reply = commit(store, 2, 1, 2, total=total)
        assert reply.status is CommitStatus.LIMIT
        assert reply.detail == (
            f"state key '{KEY}' holds 2 dead letters of at most {total}, and 3 more do not fit; look at them with "
            "`txbatch dead-letters list wc`, make room with `txbatch dead-letters drop wc --until TXID`, or raise the "
            "limit with builder.set_dead_letters(total=...)"
        )
    assert commit(store, 2, 1, total=total).status is CommitStatus.OK  # alone, it fits
    assert commit(store, 3, total - 3, total=total).status is CommitStatus.OK


def test_more_letters_than_one_section_holds_are_counted_together(store: RedisStore, client: Any) -> None:
    assert commit(store, 1, 2_500, total=2_499).status is CommitStatus.LIMIT
    assert commit(store, 1, 2_500, total=2_500).status is CommitStatus.OK
    assert client.zcard(KEY) == 2_500


def replay(store: RedisStore, txid: int, taken: Sequence[bytes], refused: int, total: int) -> Any:
    values = {txid: [f"again {number}" for number in range(refused)]}
    return store.commit(commit_of(with_letters(values, total, taken), attempt(txid)))


def test_a_replay_takes_letters_away_in_the_step_that_publishes_them(store: RedisStore, client: Any) -> None:
    commit(store, 1, 3, 1)
    members = [one.member for one in store.dead_letters.all()]
    with unanswered(store):
        assert replay(store, 3, members[1:4], refused=1, total=4).status is CommitStatus.OK
    with unchanged(client):
        assert replay(store, 3, members[1:4], refused=1, total=4).status is CommitStatus.ALREADY
    assert [one.letter_id for one in store.dead_letters.all()] == ["1.0", "3.0"]


def test_a_replay_of_a_letter_that_is_gone_changes_nothing(store: RedisStore, client: Any) -> None:
    commit(store, 1, 2)
    members = [one.member for one in store.dead_letters.all()]
    assert replay(store, 2, members[:1], refused=0, total=4).status is CommitStatus.OK
    with unchanged(client):
        reply = replay(store, 3, members, refused=0, total=4)
        assert reply.status is CommitStatus.TYPE
        assert reply.detail.startswith(f"state key '{KEY}' lacks a dead letter that was to be replayed")


def test_a_replay_may_shrink_what_a_lower_limit_has_made_too_large(store: RedisStore) -> None:
    commit(store, 1, 5)
    members = [one.member for one in store.dead_letters.all()]
    assert replay(store, 2, members[:1], refused=2, total=3).status is CommitStatus.LIMIT
    assert replay(store, 2, members[:2], refused=1, total=3).status is CommitStatus.OK
    assert store.dead_letters.page().stored_count == 4


def test_a_drop_deletes_whole_transactions_up_to_the_last_one_named(store: RedisStore) -> None:
    commit(store, 1, 3, 1, 2)
    letters = store.dead_letters
    generation = letters.page().generation
    assert letters.drop(until_txid=2, generation=generation) == 4
    assert letters.drop(until_txid=2, generation=generation) == 0
    assert [one.letter_id for one in letters.all()] == ["3.0", "3.1"]
    commit(store, 4, 1)  # the owner was not fenced, and its revision has not changed
    assert [one.letter_id for one in letters.all()] == ["3.0", "3.1", "4.0"]


def test_a_drop_of_what_is_not_committed_is_refused(store: RedisStore, client: Any) -> None:
    commit(store, 1, 1)
    with unchanged(client), pytest.raises(StateRefusedError, match=r"were not dropped: txid 2 .*; the last one is 1;"):
        store.dead_letters.drop(until_txid=2, generation=store.dead_letters.page().generation)


def test_a_drop_leaves_a_topology_alone_that_was_started_since(store, started, client: Any) -> None:
    commit(store, 1, 1)
    generation = store.dead_letters.page().generation
    admin_of(store).drop()
    assert dump(client) == {}
    second = started(nonce="c" * 32, new_generation="d" * 32)
    commit(second, 1, 1)
    with pytest.raises(StateRefusedError, match="the topology was dropped, or started again, since its letters"):
        store.dead_letters.drop(until_txid=1, generation=generation)
    assert second.dead_letters.page().stored_count == 1


def test_a_topology_that_was_never_started_has_no_letters(open_store: Any) -> None:
    page = open_store().dead_letters.page()
    assert (page.committed_txid, page.generation, page.stored_count, page.letters, page.is_last) == (0, "", 0, (), True)


def test_a_key_of_another_type_is_refused(store: RedisStore, client: Any) -> None:
    client.set(KEY, "x")
    with pytest.raises(StateRefusedError, match=f"key '{KEY}' is a string on the server, expected a zset"):
        store.dead_letters.page()
    with pytest.raises(StateRefusedError, match="expected a zset"):
        store.dead_letters.drop(until_txid=0, generation="b" * 32)
    assert commit(store, 1, 1).status is CommitStatus.TYPE


def test_letters_are_no_state_that_a_user_could_declare() -> None:
    with pytest.raises(TopologyError, match="is not a valid name"):
        SortedSetState(DEAD_LETTERS_STATE)
