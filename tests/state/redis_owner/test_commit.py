"""The commit function: each status of the closed set, on every backend, and nothing half done."""

from __future__ import annotations

import pytest

from state.codec import CodecError
from state.commits.commit import Commit, CommitStatus
from state.commits.quarantine import SetAside
from state.commits.write_set import WriteSet
from state.errors import ProtocolError, StateRefusedError
from state.redis_client.function_library import STORED_FORMAT
from state.redis_owner import arguments as redis_arguments
from state.values.state_kind import MAX_INTEGER, VALUE_FIELD, KeptEnd, Retention, StateKind, ValueType
from tests.support.stores.admin import overview_of
from tests.support.stores.builders import (
    acquire,
    attempt,
    commit_of,
    counts,
    owner_on,
    record_of,
    unanswered,
    unchanged,
    writes,
)

MAX_TXID = 2**53 - 1
"""The largest integer that is exact in Lua too."""

CONTROL = "{wc}:txbatch:control"
HASH, VALUE, SET, SORTED_SET, LIST, STREAM = (
    StateKind.HASH,
    StateKind.VALUE,
    StateKind.SET,
    StateKind.SORTED_SET,
    StateKind.LIST,
    StateKind.STREAM,
)
INT, FLOAT, STR, BYTES = ValueType.INT, ValueType.FLOAT, ValueType.STR, ValueType.BYTES


def one(kind, value_type, **changes):
    return WriteSet({"s": writes(kind, value_type, **changes)})


def commit_ok(store, write_set, txid):
    reply = store.commit(commit_of(write_set, attempt(txid)))
    assert (reply.status, reply.detail) == (CommitStatus.OK, "")


class TestEffects:
    def test_every_kind_is_a_plain_redis_value(self, store, client):
        commit_ok(
            store,
            WriteSet(
                {
                    "h": writes(HASH, INT, puts={"p": 5}, increments={"a": 1, "big": 2**52, "neg": -200}),
                    "f": writes(HASH, FLOAT, puts={"p": 0.1 + 0.2}, increments={"a": [0.1, 0.2], "t": [1e23]}),
                    "t": writes(HASH, BYTES, puts={b"\xff\x00": b"\x00 \n"}),
                    "i": writes(HASH, STR, puts={-3: "ä"}),
                    "v": writes(VALUE, INT, increments={VALUE_FIELD: 7}),
                    "w": writes(VALUE, FLOAT, increments={VALUE_FIELD: [0.5, 0.25]}),
                    "x": writes(VALUE, STR, puts={VALUE_FIELD: ""}),
                    "s": writes(SET, STR, puts={"m": True, "n": True}),
                    "n": writes(SET, INT, puts={12: True}),
                    "z": writes(SORTED_SET, FLOAT, puts={"a": 1.5}, increments={"b": [0.1, 0.2]}),
                    "l": writes(LIST, INT, appends=[3, 1, 2]),
                    "e": writes(STREAM, INT, appends=[[1, 2**32, "a", 3], [1, 0, "a", 1, "b", 2]]),
                }
            ),
            1,
        )
        assert client.hgetall("{wc}:h") == {
            b"p": b"5",
            b"a": b"1",
            b"big": b"4503599627370496",
            b"neg": b"-200",
        }
        assert client.hgetall("{wc}:f") == {
            b"p": b"0.30000000000000004",
            b"a": b"0.30000000000000004",
            b"t": b"1e+23",
        }
        assert client.hgetall("{wc}:t") == {b"\xff\x00": b"\x00 \n"}
        assert client.hgetall("{wc}:i") == {b"-3": "ä".encode()}
        assert (client.get("{wc}:v"), client.get("{wc}:w"), client.get("{wc}:x")) == (b"7", b"0.75", b"")
        assert client.smembers("{wc}:s") == {b"m", b"n"}
        assert client.smembers("{wc}:n") == {b"12"}
        assert client.zrange("{wc}:z", 0, -1, withscores=True) == [(b"b", 0.1 + 0.2), (b"a", 1.5)]
        assert client.lrange("{wc}:l", 0, -1) == [b"3", b"1", b"2"]
        assert client.xrange("{wc}:e") == [(b"1-0", {b"a": b"1", b"b": b"2"}), (b"1-4294967296", {b"a": b"3"})]

    def test_a_bounded_stream_keeps_its_last_entries_and_the_groups_of_others(self, store, client):
        last = Retention(KeptEnd.LAST, 3)
        entries = [[[txid, number, "n", f"{txid}.{number}"] for number in range(2)] for txid in (1, 2)]
        commit_ok(store, one(STREAM, STR, appends=entries[0], retention=last), 1)
        client.xgroup_create("{wc}:s", "readers", id="0")
        client.xreadgroup("readers", "one", {"{wc}:s": ">"}, count=1)
        commit_ok(store, one(STREAM, STR, appends=entries[1][::-1], retention=last), 2)
        assert [entry_id for entry_id, _ in client.xrange("{wc}:s")] == [b"1-1", b"2-0", b"2-1"]
        assert client.xinfo_groups("{wc}:s")[0]["last-delivered-id"] == b"1-0"

    def test_a_stream_whose_last_entries_are_gone_takes_no_lower_ones(self, store, client):
        client.xadd("{wc}:s", {"f": "v"}, id="5-0")
        client.xdel("{wc}:s", "5-0")
        reply = store.commit(commit_of(one(STREAM, STR, appends=[[1, 0, "f", "v"]])))
        assert (reply.status, "takes no 1-0" in reply.detail) == (CommitStatus.TYPE, True)

    def test_changes_meet_what_is_there(self, store, client):
        commit_ok(
            store,
            WriteSet(
                {
                    "h": writes(HASH, INT, puts={"a": 5, "b": 6, "c": 7}),
                    "s": writes(SET, STR, puts={"m": True, "n": True}),
                    "z": writes(SORTED_SET, FLOAT, puts={"a": 1.0, "b": 2.0, "c": 3.0}),
                    "l": writes(LIST, STR, appends=["x", "y"]),
                    "v": writes(VALUE, STR, puts={VALUE_FIELD: "gone"}),
                    "e": writes(SET, STR, puts={"only": True}),
                }
            ),
            1,
        )
        commit_ok(
            store,
            WriteSet(
                {
                    "h": writes(HASH, INT, puts={"a": -1}, increments={"b": -7}, deletes={"c": True, "no": True}),
                    "s": writes(SET, STR, puts={"o": True}, deletes={"m": True}),
                    "z": writes(SORTED_SET, FLOAT, puts={"a": 9.0}, increments={"b": [0.5]}, deletes={"c": True}),
                    "l": writes(LIST, STR, deletes={VALUE_FIELD: True}, appends=["z"]),
                    "v": writes(VALUE, STR, deletes={VALUE_FIELD: True}),
                    "e": writes(SET, STR, deletes={"only": True}),
                }
            ),
            2,
        )
        assert client.hgetall("{wc}:h") == {b"a": b"-1", b"b": b"-1"}
        assert client.smembers("{wc}:s") == {b"n", b"o"}
        assert client.zrange("{wc}:z", 0, -1, withscores=True) == [(b"b", 2.5), (b"a", 9.0)]
        assert client.lrange("{wc}:l", 0, -1) == [b"z"]
        assert client.exists("{wc}:v", "{wc}:e") == 0

    def test_more_fields_than_one_section_holds(self, store, client):
        fields = {f"w{i}": i - 1500 for i in range(3500)}
        commit_ok(store, counts(**fields), 1)
        commit_ok(store, counts(**fields), 2)
        assert client.hgetall("{wc}:counts") == {f.encode(): b"%d" % (2 * n) for f, n in fields.items()}
        items = list(range(2500))
        commit_ok(store, one(LIST, INT, appends=items), 3)
        assert client.lrange("{wc}:s", 0, -1) == [b"%d" % item for item in items]

    @pytest.mark.parametrize("start", [0, 1, -1, 99_999_999, 100_000_000, 10**14, 10**15, MAX_INTEGER - 1])
    def test_integers_stay_plain_decimals(self, store, client, start):
        commit_ok(store, one(HASH, INT, puts={"a": start, "b": -start}), 1)
        commit_ok(store, one(HASH, INT, increments={"a": 1, "b": -1}), 2)
        assert client.hgetall("{wc}:s") == {b"a": str(start + 1).encode(), b"b": str(-start - 1).encode()}

    def test_floats_read_by_hand_still_add_up(self, store, client):
        client.hset("{wc}:s", mapping={"a": "10", "b": "1e3", "c": "-.5"})
        commit_ok(store, one(HASH, FLOAT, increments={"a": [0.5], "b": [1.0], "c": [0.25, 0.25]}), 1)
        assert client.hgetall("{wc}:s") == {b"a": b"10.5", b"b": b"1001", b"c": b"0"}

    def test_metadata_is_put_and_forgotten_with_the_commit(self, store):
        store.store_metadata({"coordinator:1": (1, "x"), "coordinator:2": None})
        reply = store.commit(
            commit_of(counts(a=1), attempt(1), metadata={"p.0:1": {"offset": 5}}, forget=("coordinator:1", "no:1"))
        )
        assert reply.status is CommitStatus.OK
        assert acquire(store, "c" * 32).metadata == {"coordinator:2": None, "p.0:1": {"offset": 5}}


class TestOrderAndIdentity:
    def test_same_commit_again_is_already(self, store, client):
        commit = commit_of(counts(a=1), attempt(1), attempt(2), metadata={"p:2": 1})
        with unanswered(store):
            assert store.commit(commit).status is CommitStatus.OK
        with unchanged(client):
            assert store.commit(commit).status is CommitStatus.ALREADY
        commit_ok(store, counts(a=1), 3)
        assert client.hget("{wc}:counts", "a") == b"2"

    def test_a_late_repeat_is_refused_once_the_owner_has_moved_on(self, store, client):
        commit = commit_of(counts(a=1), attempt(1))
        with unanswered(store):
            commit_ok(store, counts(a=1), 1)
            commit_ok(store, counts(a=1), 2)
        with unchanged(client):
            assert store.commit(commit).status is CommitStatus.CONFLICT

    def test_other_content_in_the_place_of_an_unanswered_commit_conflicts(self, store, client):
        with unanswered(store):
            store.commit(commit_of(counts(a=1), attempt(1)))
        with unchanged(client):
            for other in (
                commit_of(counts(a=2), attempt(1)),
                commit_of(counts(b=1), attempt(1)),
                commit_of(counts(a=1), attempt(1), metadata={"p:1": 1}),
                commit_of(counts(a=1), attempt(1), forget=("p:1",)),
                commit_of(counts(a=1), attempt(1, 77)),
            ):
                reply = store.commit(other)
                assert reply.status is CommitStatus.CONFLICT
                assert reply.detail == "revision is '2' by another write, expected 1"

    @pytest.mark.parametrize("txids", [(1,), (1, 2), (3,)], ids=["again", "overlapping", "ahead"])
    def test_a_group_that_does_not_follow_the_committed_txid_is_out_of_order(self, store, client, txids):
        commit_ok(store, counts(a=1), 1)
        with unchanged(client):
            reply = store.commit(commit_of(counts(a=1), *map(attempt, txids)))
            assert reply.status is CommitStatus.ORDER
            assert reply.detail == f"group {txids[0]}..{txids[-1]} does not follow committed txid 1"

    def test_receipt_is_kept_for_the_most_recent_txids(self, store, client):
        for first in range(1, 1101, 100):
            group = [attempt(txid) for txid in range(first, first + 100)]
            assert store.commit(commit_of(WriteSet(), *group)).status is CommitStatus.OK
        assert client.hlen("{wc}:txbatch:receipts") == 1024
        assert not client.hexists("{wc}:txbatch:receipts", "76")
        assert client.hexists("{wc}:txbatch:receipts", "77")
        receipt = overview_of(store).last_receipt
        assert receipt is not None
        assert (receipt.attempt_id, receipt.first_txid, receipt.last_txid) == (2100, 1001, 1100)

    def test_txids_are_exact_up_to_the_limit(self, store, client):
        client.hset(CONTROL, "committed", str(MAX_TXID - 1))
        with unanswered(store):
            commit_ok(store, counts(a=1), MAX_TXID)
        assert overview_of(store).committed_txid == MAX_TXID
        assert store.commit(commit_of(counts(a=1), attempt(MAX_TXID))).status is CommitStatus.ALREADY

    def test_commit_before_acquire_is_our_bug(self, open_store):
        with pytest.raises(ProtocolError, match="before it was acquired"):
            open_store("other").commit(commit_of(counts(a=1)))


class TestOwnership:
    def test_a_newer_owner_fences_the_older_out(self, started, client):
        older, newer = started(), started("c" * 32)
        with unchanged(client):
            assert older.commit(commit_of(counts(a=1))).status is CommitStatus.FENCED
        assert newer.commit(commit_of(counts(a=1))).status is CommitStatus.OK
        assert older.commit(commit_of(counts(a=1))).status is CommitStatus.FENCED

    @pytest.mark.parametrize(
        ("damage", "status"),
        [
            (("hset", CONTROL, "fence", "0:" + "e" * 32), CommitStatus.REGRESSED),
            (("hset", CONTROL, "fence", "1:" + "e" * 32), CommitStatus.FENCED),
            (("hset", CONTROL, "generation", "d" * 32), CommitStatus.REGRESSED),
            (("hset", CONTROL, "format", "1"), CommitStatus.VERSION),
            (("hincrby", CONTROL, "begun", "1"), CommitStatus.TORN),
            (("del", CONTROL), CommitStatus.REGRESSED),
        ],
        ids=["an older fence", "an equal counter with another nonce", "generation", "format", "half", "nothing there"],
    )
    def test_a_record_that_is_not_the_owners_takes_no_commit(self, store, client, damage, status):
        client.execute_command(*damage)
        with unchanged(client):
            reply = store.commit(commit_of(counts(a=1)))
        assert reply.status is status
        if status is CommitStatus.VERSION:
            assert reply.detail == f"stored format is '1', expected '{STORED_FORMAT}'"

    @pytest.mark.parametrize(
        ("damage", "story"), [(("hdel",), "is gone"), (("hset", "x"), "is 'x', expected a number")]
    )
    def test_a_control_hash_without_its_committed_txid_regressed(self, store, client, damage, story):
        command, *value = damage
        client.execute_command(command, CONTROL, "committed", *value)
        with unchanged(client):
            reply = store.commit(commit_of(counts(a=1)))
            assert reply.status is CommitStatus.REGRESSED
            assert reply.detail == f"field 'committed' of key '{{wc}}:txbatch:control' {story}"
            with pytest.raises(StateRefusedError, match=r"REGRESSED: field 'committed' .* is damaged; .*restore"):
                store.confirm()


ADDED, FLOAT_ADDED = one(HASH, INT, increments={"a": 1}), one(HASH, FLOAT, increments={"a": [1.0]})
TAKEN_AWAY = one(HASH, INT, increments={"a": -1})
ENTRIES = one(STREAM, STR, appends=[[1, 0, "f", "v"], [1, 2, "f", "v"]])
TEXT = ("set", "{wc}:s", "x")
REFUSED = [
    ("TYPE", ADDED, TEXT, "is a string on the server, expected a hash"),
    ("TYPE", one(VALUE, STR, puts={VALUE_FIELD: "x"}), ("sadd", "{wc}:s", "x"), "is a set on the server"),
    ("TYPE", one(SET, STR, puts={"x": True}), ("hset", "{wc}:s", "x", "1"), "expected a set"),
    ("TYPE", one(SORTED_SET, FLOAT, puts={"x": 1.0}), TEXT, "expected a zset"),
    ("TYPE", one(LIST, STR, appends=["x"]), TEXT, "expected a list"),
    ("TYPE", one(LIST, STR, deletes={VALUE_FIELD: True}), TEXT, "expected a list"),
    ("TYPE", ENTRIES, TEXT, "expected a stream"),
    ("TYPE", ENTRIES, ("xadd", "{wc}:s", "1-1", "f", "v"), "has had an entry 1-1, so it takes no 1-0 of this"),
    ("TYPE", one(HASH, STR, deletes={"f": True}), TEXT, "expected a hash"),
    *(
        ("TYPE", ADDED, ("hset", "{wc}:s", "a", found), f"field 'a' holds '{found}'")
        for found in ("", " 1", "1 ", "+1", "01", "-0", "1.0", "1e3", "0x10", "nan", "one", "--1")
    ),
    *(
        ("TYPE", FLOAT_ADDED, ("hset", "{wc}:s", "a", found), "expected a finite number")
        for found in ("", " 1", "0x10", "nan", "inf", "-inf", "1e999", "one", ".", "1e")
    ),
    ("TYPE", one(VALUE, INT, increments={VALUE_FIELD: 1}), TEXT, "holds 'x'"),
    ("TYPE", one(SORTED_SET, FLOAT, increments={"a": [1.0]}), ("zadd", "{wc}:s", "inf", "a"), "holds 'inf'"),
    ("LIMIT", ADDED, ("hset", "{wc}:s", "a", str(MAX_INTEGER)), "would leave"),
    ("LIMIT", TAKEN_AWAY, ("hset", "{wc}:s", "a", str(-MAX_INTEGER)), "would leave"),
    ("LIMIT", TAKEN_AWAY, ("hset", "{wc}:s", "a", str(MAX_INTEGER + 1)), "outside"),
    ("LIMIT", one(HASH, INT, increments={"a": 2**53}), None, "'s', field 'a': 9007199254740992 is added"),
    ("LIMIT", one(HASH, INT, increments={"a": -(2**70)}), None, "'a': -1180591620717411303424 is added"),
    ("LIMIT", one(HASH, INT, puts={"a": 2**53}), None, "holds '9007199254740992', outside"),
    ("LIMIT", one(HASH, FLOAT, puts={"a": float("inf")}), None, "would become 'inf'"),
    ("LIMIT", one(HASH, FLOAT, increments={"a": [1e308, 1e308]}), None, "would leave the finite numbers"),
    ("LIMIT", one(SORTED_SET, FLOAT, increments={"a": [1e308, 1e308, -1e308]}), None, "would leave the finite"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[3]}")
def test_refused_content_changes_nothing(store, client, case):
    status, write_set, planted, message = case
    if planted:
        client.execute_command(*planted)
    with unchanged(client):
        fine_ones = {
            "0first": writes(HASH, INT, puts={"a": 1}, increments={"b": 1}),
            "1first": writes(LIST, STR, appends=["x"]),
            "2first": writes(SET, STR, puts={"x": True}),
        }
        last = {"last": writes(HASH, FLOAT, increments={"b": [1.0]})}
        reply = store.commit(commit_of(WriteSet({**fine_ones, **write_set.states, **last}), metadata={"p:1": 1}))
        assert reply.status == status
        assert message in reply.detail


TOO_MANY = [
    one(HASH, INT, increments=dict.fromkeys(range(500_001), 1)),
    one(HASH, FLOAT, increments={"a": [1.0] * 500_001}),
]


@pytest.mark.parametrize("write_set", TOO_MANY, ids=["fields", "floats"])
def test_too_many_operations_are_not_sent(store, client, write_set):
    with unchanged(client):
        reply = store.commit(commit_of(write_set))
        assert reply.status is CommitStatus.LIMIT
        assert "commit has 500001 operations, more than the limit of 500000" in reply.detail


def test_too_many_bytes_are_not_sent(store, client, monkeypatch):
    monkeypatch.setattr(redis_arguments, "BYTES_LIMIT", 1000)
    with unchanged(client):
        reply = store.commit(commit_of(one(VALUE, STR, puts={VALUE_FIELD: "x" * 1000})))
        assert reply.status is CommitStatus.LIMIT
        assert "than the limit of 1000: 1014 for state 's', with the longest value in field ''; cut" in reply.detail


@pytest.mark.redis
@pytest.mark.parametrize("write_set", TOO_MANY, ids=["fields", "floats"])
def test_the_server_has_the_same_limit(redis_backend, monkeypatch, write_set):
    monkeypatch.setattr(redis_arguments, "COMMIT_OPERATIONS_LIMIT", 10**9)
    store, client = owner_on(redis_backend.client()), redis_backend.client()
    with unchanged(client):
        reply = store.commit(commit_of(write_set))
        assert (reply.status, "more than 500000 operations" in reply.detail) == (CommitStatus.LIMIT, True)


@pytest.mark.parametrize(
    ("key", "more"),
    [("receipts", {}), ("history", {}), ("quarantine", {"quarantine": SetAside(record_of(1), 10)})],
    ids=["receipts", "history", "quarantine"],
)
def test_wrong_type_under_a_key_of_ours_changes_nothing(store, client, key, more):
    client.set(f"{{wc}}:txbatch:{key}", "x")
    with unchanged(client):
        reply = store.commit(commit_of(counts(a=1), **more))
        assert reply.status is CommitStatus.TYPE
        assert f"txbatch:{key}" in reply.detail


def test_long_and_binary_finds_are_shown_short(store, client):
    client.hset("{wc}:s", b"\xff", b"\x00" * 5000)
    reply = store.commit(commit_of(one(HASH, INT, increments={b"\xff": 1})))
    assert reply.status is CommitStatus.TYPE
    assert len(reply.detail) < 700


def test_unstorable_metadata_is_refused_before_anything_is_sent(store, client):
    with unchanged(client), pytest.raises(CodecError):
        store.commit(Commit((attempt(1),), counts(a=1), metadata={"p:1": object()}))
