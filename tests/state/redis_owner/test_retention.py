"""What a commit keeps: bounded states, HyperLogLogs and keys that expire, on every backend, and nothing half done."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
import redis

from state import HashState, HyperLogLogState, ListState, SortedSetState, ValueState
from state.commits.commit import CommitStatus
from state.commits.packed_writes import SECTION_LIMIT
from state.commits.write_set import WriteSet
from state.redis_admin.snapshots import snapshot
from tests.support.stores.builders import attempt, commit_of, owner_on, unchanged
from tests.support.stores.written import written

FAR = datetime(2100, 1, 1, tzinfo=UTC)
FAR_MS = 4_102_444_800_000
SOON = datetime(2099, 12, 31, tzinfo=UTC)
SOON_MS = FAR_MS - 86_400_000
PAST = datetime(2001, 1, 1, tzinfo=UTC)


class Kept:
    """One state of each sort that keeps less than all, or keeps it otherwise."""

    best = SortedSetState("best", keep_highest=3)
    least = SortedSetState("least", keep_lowest=3)
    recent = ListState("recent", value=int, keep_last=4)
    unique = HyperLogLogState("unique")
    numbers = HyperLogLogState("numbers", value=int)
    money = HashState("money", value=Decimal, scale=2)
    profile = ValueState("profile", value="json")
    views = HashState("views").per("day", expire_at=lambda day: PAST if day == "past" else FAR)
    last = ValueState("last").per("day", expire_at=lambda _: FAR)
    visitors = HyperLogLogState("visitors").per("day")
    seen = HashState("seen", value=str, fields_expire=True)
    of_day = HashState("of_day", value=int, fields_expire=True).per("day", expire_at=lambda _: FAR)


HANDLES: list[Any] = [value for value in vars(Kept).values() if hasattr(value, "kind")]


def commit(store, txid, change, *more):
    write_set = WriteSet()
    for each in (change, *more):
        write_set.then(WriteSet({**written(Kept(), each)}))
    attempts = [attempt(txid + i) for i in range(1 + len(more))]
    return store.commit(commit_of(write_set, *attempts))


def commit_ok(store, txid, change, *more):
    reply = commit(store, txid, change, *more)
    assert (reply.status, reply.detail) == (CommitStatus.OK, "")


class TestBounded:
    def test_the_best_members_stay_and_equal_scores_are_told_apart_by_their_bytes(self, store, client):
        scores = {"a": 1.0, "b": 2, "ö": 2, "B": 2, "c": 0.5}
        commit_ok(store, 1, lambda own: (own.best.put_many(scores), own.least.put_many(scores)))
        assert client.zrange("{wc}:best", 0, -1, withscores=True) == [(b"B", 2.0), (b"b", 2.0), ("ö".encode(), 2.0)]
        assert client.zrange("{wc}:least", 0, -1, withscores=True) == [(b"c", 0.5), (b"a", 1.0), (b"B", 2.0)]

    def test_a_score_only_gets_better(self, store, client):
        commit_ok(store, 1, lambda own: (own.best.put("a", 5), own.least.put("a", 5)))
        commit_ok(store, 2, lambda own: (own.best.put("a", 4), own.least.put("a", 6)))
        assert (client.zscore("{wc}:best", "a"), client.zscore("{wc}:least", "a")) == (5.0, 5.0)
        commit_ok(store, 3, lambda own: (own.best.put("a", 6), own.least.put("a", 4)))
        assert (client.zscore("{wc}:best", "a"), client.zscore("{wc}:least", "a")) == (6.0, 4.0)

    def test_more_members_than_a_section_are_cut_after_the_last_one(self, store, client):
        members = {f"m{i}": float(i) for i in range(2 * SECTION_LIMIT + 5)}
        commit_ok(store, 1, lambda own: own.best.put_many(members))
        assert client.zrange("{wc}:best", 0, -1) == [b"m2002", b"m2003", b"m2004"]

    def test_the_last_items_stay(self, store, client):
        commit_ok(store, 1, lambda own: own.recent.extend(range(6)))
        assert client.lrange("{wc}:recent", 0, -1) == [b"2", b"3", b"4", b"5"]
        commit_ok(store, 2, lambda own: own.recent.append(6), lambda own: own.recent.extend([7, 8]))
        assert client.lrange("{wc}:recent", 0, -1) == [b"5", b"6", b"7", b"8"]
        commit_ok(store, 4, lambda own: (own.recent.delete(), own.recent.append(9)))
        assert client.lrange("{wc}:recent", 0, -1) == [b"9"]

    def test_cutting_is_no_operation(self, store):
        assert written(Kept(), lambda own: own.recent.append(1))["recent"].operations() == 1

    @pytest.mark.parametrize("call", ["increment", "remove", "score"])
    def test_what_would_depend_on_when_it_was_cut_is_refused(self, call):
        with pytest.raises(TypeError, match=f"'best' keeps only 3 members and cannot {call}: the result would depend"):
            written(Kept(), lambda own: getattr(own.best, call)("a"))


class TestHyperLogLog:
    def test_members_are_counted_once_whatever_the_transaction(self, store, client):
        commit_ok(store, 1, lambda own: (own.unique.add_many(["a", "b", "ö"]), own.numbers.add(7)))
        commit_ok(store, 2, lambda own: own.unique.add_many({"a", "c"}), lambda own: own.unique.add("c"))
        assert client.pfcount("{wc}:unique") == 4
        assert client.pfcount("{wc}:numbers") == 1

    def test_it_grows_from_its_sparse_form_into_the_dense_one(self, store, client):
        commit_ok(store, 1, lambda own: own.unique.add("first"))
        commit_ok(store, 2, lambda own: own.unique.add_many(map(str, range(5_000))))
        commit_ok(store, 3, lambda own: own.unique.add("last"))
        assert 4_850 < client.pfcount("{wc}:unique") < 5_150

    def test_a_key_that_is_not_one_is_refused_before_the_first_write(self, redis_backend):
        client = redis_backend.client()
        store = owner_on(client)
        commit_ok(store, 1, lambda own: own.unique.add_many(["a", "b"]))
        sound = client.get("{wc}:unique")
        spoilt = [b"", b"text", b"HYLL", sound[:-1], b"HYLL\x00" + sound[5:], b"HYLL\x07" + sound[5:], sound + b"\x00"]
        for held in spoilt:
            client.set("{wc}:unique", held)
            with unchanged(client):
                reply = commit(store, 2, lambda own: (own.money.increment("a", 1), own.unique.add("c")))
                assert (reply.status, reply.detail) == (
                    CommitStatus.TYPE,
                    "state key '{wc}:unique' holds a string that is not a HyperLogLog",
                ), held[:20]
        client.set("{wc}:unique", sound)
        commit_ok(store, 2, lambda own: own.unique.add("c"))

    def test_a_key_of_another_type_is_refused(self, store, client):
        client.hset("{wc}:unique", "a", "b")
        reply = commit(store, 1, lambda own: own.unique.add("c"))
        assert reply.status is CommitStatus.TYPE
        assert reply.detail == "state key '{wc}:unique' is a hash on the server, expected a HyperLogLog"


class TestExpiry:
    def test_the_key_of_a_part_expires_at_its_time_whatever_has_become_of_it(self, store, client):
        commit_ok(store, 1, lambda own: (own.views["mon"].increment("/a"), own.last["mon"].put(1)))
        commit_ok(store, 2, lambda own: own.views["mon"].delete("/a"))
        assert client.exists("{wc}:views:mon") == 0
        commit_ok(store, 3, lambda own: (own.views["mon"].increment("/b"), own.last["mon"].put(2)))
        assert client.pexpiretime("{wc}:views:mon") == client.pexpiretime("{wc}:last:mon") == FAR_MS
        assert client.pttl("{wc}:txbatch:control") == -1

    def test_groups_make_no_difference_to_it(self, store, client):
        commit_ok(
            store,
            1,
            lambda own: own.views["mon"].increment("/a"),
            lambda own: own.views["mon"].delete("/a"),
            lambda own: own.views["mon"].increment("/b"),
        )
        assert client.pexpiretime("{wc}:views:mon") == FAR_MS

    def test_a_part_whose_time_has_passed_is_written_and_gone_in_one_step(self, store, client):
        for txid in (1, 2):
            commit_ok(store, txid, lambda own: (own.views["past"].increment("/a", 5), own.money.increment("a", 1)))
            assert client.exists("{wc}:views:past") == 0
        assert client.hgetall("{wc}:money") == {b"a": b"200"}


class TestSnapshot:
    def test_every_state_is_decoded_as_it_was_declared(self, store, client):
        def change(own):
            own.best.put("a", 1)
            own.recent.append(3)
            own.unique.add_many(["ab"])
            own.money.put("x", Decimal("1.5"))
            own.profile.put({"b": [1, None]})
            own.views["mon"].increment("/a", 2)
            own.views["tue/ö"].increment("/b")
            own.visitors["mon"].add_many(["x", "y"])

        commit_ok(store, 1, change)
        client.set("{wc}:views", "not a part")
        found = snapshot(client, "wc", HANDLES)
        assert found.txid == 1
        assert found.states == {
            "best": {"a": 1.0},
            "least": {},
            "recent": [3],
            "unique": 1,
            "numbers": 0,
            "money": {"x": Decimal("1.50")},
            "profile": {"b": [1, None]},
            "views": {"mon": {"/a": 2}, "tue/ö": {"/b": 1}},
            "last": {},
            "visitors": {"mon": 2},
            "seen": {},
            "of_day": {},
        }

    def test_parts_that_a_run_adds_meanwhile_are_found_at_the_same_moment(self, store, client):
        """Commits before every command that a snapshot sends at first: it has to look again, and gets all or none."""
        days = iter(range(4))

        class Busy:
            def __getattr__(self, name):
                day = next(days, None)
                if day is not None:
                    commit_ok(store, 1 + day, lambda own: own.views[f"d{day}"].increment("n"))
                return getattr(client, name)

        found = snapshot(Busy(), "wc", [Kept.views])
        assert found.states == {"views": {f"d{day}": {"n": 1} for day in range(found.txid)}}
        assert found.txid == 4


def left_of(client, key):
    """Field -> value and when it goes; -1 for never."""
    held = client.hgetall(key)
    times = client.execute_command("HPEXPIRETIME", key, "FIELDS", len(held), *held) if held else []
    return {field.decode(): (value.decode(), at) for (field, value), at in zip(held.items(), times, strict=True)}


@pytest.fixture
def fading(store, client):
    """A store on a server that can have fields expire; Redis before 7.4 cannot."""
    try:
        client.execute_command("HPEXPIREAT", "none", "1", "FIELDS", "1", "f")
    except redis.ResponseError:
        pytest.skip("this server lacks HPEXPIREAT")
    return store


class TestExpiringFields:
    def test_a_field_goes_at_the_time_of_its_last_put(self, fading, client):
        def first(own):
            own.seen.put("a", "1", expire_at=FAR)
            own.seen.put_many(["b", "c"], ["2", "3"], expire_at=FAR_MS // 1000)
            own.seen.put("d", "4")
            own.of_day["mon"].put("n", 5, expire_at=SOON.date())

        assert commit(fading, 1, first).status is CommitStatus.OK
        assert left_of(client, "{wc}:seen") == {
            "a": ("1", FAR_MS),
            "b": ("2", FAR_MS),
            "c": ("3", FAR_MS),
            "d": ("4", -1),
        }
        assert left_of(client, "{wc}:of_day:mon") == {"n": ("5", SOON_MS)}
        assert client.pexpiretime("{wc}:of_day:mon") == FAR_MS

        def second(own):
            own.seen.put("a", "5", expire_at=SOON)
            own.seen.put("b", "6")
            own.seen.put_many({"d": "7"}, expire_at=SOON)
            own.seen.delete("c")

        assert commit(fading, 2, second).status is CommitStatus.OK
        assert left_of(client, "{wc}:seen") == {"a": ("5", SOON_MS), "b": ("6", -1), "d": ("7", SOON_MS)}

    def test_what_had_expired_when_it_was_written_is_gone_and_counted(self, fading, client):
        def change(own):
            own.seen.put_many(["a", "b"], ["1", "2"], expire_at=PAST)
            own.seen.put("c", "3", expire_at=FAR)
            own.of_day["mon"].put("n", 5, expire_at=PAST)

        assert commit(fading, 1, change).expired_count == 3
        assert left_of(client, "{wc}:seen") == {"c": ("3", FAR_MS)}
        assert client.exists("{wc}:of_day:mon") == 0

    def test_more_fields_and_times_than_a_section_holds(self, fading, client):
        count = 2 * SECTION_LIMIT + 5

        def change(own):
            own.seen.put_many([f"a{i}" for i in range(count)], ["x"] * count, expire_at=FAR)
            for i in range(count):
                own.seen.put(f"b{i}", "y", expire_at=FAR_MS // 1000 - i)

        assert commit(fading, 1, change).status is CommitStatus.OK
        left = left_of(client, "{wc}:seen")
        assert len(left) == 2 * count
        assert all(left[f"a{i}"] == ("x", FAR_MS) and left[f"b{i}"] == ("y", FAR_MS - 1000 * i) for i in range(count))

    @pytest.mark.parametrize("seed", range(30))
    def test_groups_make_no_difference_to_it(self, fading, client, seed):
        random = Random(seed)

        def change():
            calls = [
                (
                    random.choice("abcd"),
                    str(random.randint(0, 9)),
                    random.choice([None, None, FAR, SOON, PAST, "delete"]),
                )
                for _ in range(random.randint(1, 5))
            ]

            def make(own):
                for field, value, at in calls:
                    if at == "delete":
                        own.seen.delete(field)
                    elif random.random() < 0.5:
                        own.seen.put(field, value, expire_at=at)
                    else:
                        own.seen.put_many([field], [value], expire_at=at)

            return make

        changes = [change() for _ in range(6)]
        assert commit(fading, 1, *changes).status is CommitStatus.OK
        together = left_of(client, "{wc}:seen")
        client.delete("{wc}:seen")
        for number, each in enumerate(changes):
            assert commit(fading, 7 + number, each).status is CommitStatus.OK
        assert left_of(client, "{wc}:seen") == together

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (lambda own: own.money.put("a", Decimal(1), expire_at=FAR), "its fields do not expire; declare it with fi"),
            (lambda own: own.of_day["mon"].increment("n"), r"its fields expire: .* or count in parts that expire"),
            (lambda own: own.of_day["mon"].increment_many({"n": 1}), r"its fields expire: .* or count in parts that "),
        ],
    )
    def test_a_field_expires_only_where_that_is_declared_and_is_not_counted_there(self, change, sentence):
        with pytest.raises(TypeError, match=sentence):
            written(Kept(), change)
