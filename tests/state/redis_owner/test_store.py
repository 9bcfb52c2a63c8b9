"""Acquire, metadata, status, drop and reads, on every backend."""

from __future__ import annotations

import re
from unittest import mock

import pytest

from state.codec import CodecError
from state.commits.commit import CommitStatus
from state.commits.write_set import WriteSet
from state.errors import FencedError, StaleReadError, StateRefusedError
from state.records.durability import Durability, DurabilityLevel
from state.records.transaction_history import RECEIPTS_KEPT
from state.redis_admin.drop import Dropped
from state.redis_client.connection import RedisConnection
from state.redis_client.function_library import LIBRARY_NAME, STORED_FORMAT
from state.redis_owner.reader import RedisReader, load_redis_url, save_redis_url
from state.redis_owner.store import RedisStore
from state.values.state_kind import VALUE_FIELD, StateKind, ValueType
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import (
    DESCRIPTION,
    GENERATION,
    NONCE,
    acquire,
    attempt,
    commit_of,
    counts,
    declaring,
    described_state,
    dump,
    record_of,
    unanswered,
    unchanged,
    writes,
)

CONTROL, METADATA, RECEIPTS = OWN = [f"{{wc}}:txbatch:{name}" for name in ("control", "metadata", "receipts")]
QUARANTINE = "{wc}:txbatch:quarantine"
NO_DAMAGE = ("exists", CONTROL)


def goes_back(store, open_store, client):
    """The server loses the last writes of a running owner, a commit and metadata, and is back at those before."""
    store.store_metadata({"coordinator:1": 1})
    saved = dump(client)
    store.commit(commit_of(counts(a=1), attempt(1)))
    store.store_metadata({"coordinator:2": 2})
    client.flushdb()
    for key, (_, content) in saved.items():
        client.hset(key, mapping=content)


def starts_again(store, open_store, client):
    admin_of(store).drop()
    acquire(open_store(), "c" * 32, new_generation="9" * 32)


MEANWHILE = {
    "a newer owner": (
        lambda store, open_store, client: acquire(open_store(), "c" * 32),
        FencedError,
        "topology 'wc' was taken over by a newer coordinator",
    ),
    "a drop and a new start": (starts_again, FencedError, "topology 'wc' was dropped during this run"),
    "the keys are gone": (lambda store, open_store, client: client.delete(CONTROL), StateRefusedError, "REGRESSED"),
    "the last writes are gone": (goes_back, StateRefusedError, "REGRESSED: revision is '2', .*returned to an"),
    "half a write": (
        lambda store, open_store, client: client.hincrby(CONTROL, "begun", 1),
        StateRefusedError,
        "TORN.* part of a write; .*restore its data from a copy",
    ),
}
CALLS = {
    "metadata": lambda store: store.store_metadata({"coordinator:3": 3}),
    "the last metadata again": lambda store: store.store_metadata({"coordinator:2": 2}),
    "barrier": lambda store: store.note_durable(1),
    "confirm": RedisStore.confirm,
    "last group": RedisStore.last_group,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_no_call_passes_of_an_owner_whose_state_is_no_longer_as_it_left_it(store, open_store, client, meanwhile, call):
    happens, error, message = meanwhile
    happens(store, open_store, client)
    with unchanged(client), pytest.raises(error, match=message):
        call(store)


class TestAcquire:
    def test_first_start_makes_generation_and_fence(self, open_store, client):
        store = open_store()
        acquired = acquire(store)
        status = overview_of(store)
        assert (status.fence, status.generation, acquired.committed_txid) == (f"1:1:{NONCE}-0", GENERATION, 0)
        assert acquired.metadata == {}
        assert client.hget(CONTROL, "format") == STORED_FORMAT.encode()

    def test_same_nonce_again_answers_the_same(self, started, client):
        store = started("0" * 32)
        first = acquire(store)
        with unchanged(client):
            assert acquire(store) == first

    def test_restart_goes_on_where_the_last_run_stopped(self, started, open_store):
        first = started()
        first.store_metadata({"coordinator:1": [1, 2], "coordinator:2": (3, {"a": b"x"})})
        first.commit(commit_of(counts(a=1), attempt(1)))
        store = open_store()
        second = acquire(store, "c" * 32, new_generation="d" * 32)
        assert (overview_of(store).fence, overview_of(store).generation) == (
            "2:4:" + "c" * 32 + "-0",
            GENERATION,
        )
        assert second.committed_txid == 1
        assert second.metadata == {"coordinator:1": [1, 2], "coordinator:2": (3, {"a": b"x"})}

    def test_a_delayed_acquire_cannot_take_over_from_a_newer_one(self, open_store, client):
        acquire(open_store())
        delayed = ["txbatch_10_acquire", "4", *OWN, "{wc}:txbatch:quarantine"]
        given = ["e" * 32, GENERATION, DESCRIPTION, "source-1", "", ""]
        acquire(open_store(), "c" * 32)
        with unchanged(client):
            assert client.execute_command("FCALL", *delayed, f"1:1:{NONCE}-0", *given)[0] == b"RACED"
            assert client.execute_command("FCALL", *delayed, "", *given)[0] == b"RACED"

    @pytest.mark.parametrize(
        ("damage", "given", "message"),
        [
            (
                NO_DAMAGE,
                {"source_fingerprint": "source-2"},
                "'wc' was .* 'source-1', given 'source-2'; run `txbatch drop wc` .* another topology id, .*--adopt",
            ),
            (NO_DAMAGE, {"topology": "topology-2"}, rf"'wc' was .*{re.escape(repr(DESCRIPTION))}, given 'topology-2"),
            (("hset", CONTROL, "format", "9"), {}, f"VERSION: stored format is '9', expected '{STORED_FORMAT}'"),
            (("set", CONTROL, "x"), {}, "is a string on the server, expected a hash"),
            (("hincrby", CONTROL, "begun", "1"), {}, r"TORN.* part of a write; .*restore its data from a copy"),
            (("del", CONTROL), {}, r"'wc' cannot start: REGRESSED.*restore the server's data"),
        ],
    )
    def test_a_start_on_what_it_cannot_continue_is_refused(self, store, damage, given, message):
        store.store_metadata({"coordinator:1": 1})
        client = store.connection.client
        client.execute_command(*damage)
        with unchanged(client), pytest.raises(StateRefusedError, match=message):
            acquire(store, "c" * 32, **given)

    @pytest.mark.parametrize(
        ("key", "content", "message"),
        [
            (METADATA, "x", "REGRESSED"),
            (RECEIPTS, "x", "REGRESSED"),
            (QUARANTINE, record_of(1).packed(), "quarantined batches are there"),
        ],
        ids=["metadata", "receipts", "quarantine"],
    )
    def test_records_without_a_control_key_stop_a_first_start(self, open_store, client, key, content, message):
        client.hset(key, "1", content)
        with pytest.raises(StateRefusedError, match=message):
            acquire(open_store())

    @pytest.mark.parametrize("call", ["metadata", "commit"])
    def test_an_accepted_change_is_stored_by_the_first_write_and_not_before(self, open_store, client, call):
        acquire(open_store())
        store, descriptions = open_store(), ["source_fingerprint", "topology"]
        found = store.look()
        acquire(store, "c" * 32, source_fingerprint="source-2", topology="topology-2", accepted=found)
        assert client.hmget(CONTROL, descriptions) == [b"source-1", DESCRIPTION.encode()]
        acquire(open_store(), "d" * 32)  # so what was there before may still go on
        acquire(store, "e" * 32, source_fingerprint="source-2", topology="topology-2", accepted=found)
        for _ in range(2):
            with unanswered(store):
                if call == "metadata":
                    store.store_metadata({"coordinator:1": 1})
                else:
                    assert store.commit(commit_of(counts(a=1))).status in (CommitStatus.OK, CommitStatus.ALREADY)
        assert client.hmget(CONTROL, descriptions) == [b"source-2", b"topology-2"]
        acquire(open_store(), "f" * 32, source_fingerprint="source-2", topology="topology-2")

    def test_what_changed_after_the_look_is_not_accepted(self, store, open_store):
        found = open_store().look()
        acquire(store, "c" * 32, source_fingerprint="source-2", accepted=found)
        store.store_metadata({"coordinator:1": 1})
        with pytest.raises(StateRefusedError, match="stored fingerprint 'source-2', given 'source-3'"):
            acquire(open_store(), "d" * 32, source_fingerprint="source-3", accepted=found)

    def test_a_look_tells_what_the_next_owner_finds_and_changes_nothing(self, open_store, client):
        store = open_store()
        assert store.look() is None
        acquire(store)
        store.store_metadata({"coordinator:1": [1, 2]})
        with unchanged(client):
            found = open_store().look()
            assert (found.committed_txid, found.source_fingerprint, found.topology) == (0, "source-1", DESCRIPTION)
            assert found.metadata == {"coordinator:1": [1, 2]}
        assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK

    def test_a_look_finds_nothing_where_acquire_refuses(self, open_store, client):
        acquire(open_store())
        client.hset(CONTROL, "format", "9")
        assert open_store().look() is None
        client.set(CONTROL, "x")
        assert open_store().look() is None

    def test_a_look_at_damaged_metadata_is_refused(self, store, open_store, client):
        store.store_metadata({"coordinator:1": 1, "coordinator:2": 2})
        client.hdel(METADATA, "coordinator:1")
        with pytest.raises(
            StateRefusedError, match=r"lost or altered some of its stored metadata; .*checksum over 1 field is"
        ):
            open_store().look()


class TestMetadata:
    def test_many_fields_in_one_call(self, store):
        entries = {f"partition.{i}:1": (i, None) for i in range(3000)}
        store.store_metadata(entries)
        store.store_metadata({}, [f"partition.{i}:1" for i in range(1, 3000)])
        assert acquire(store, "c" * 32).metadata == {"partition.0:1": (0, None)}

    def test_a_value_that_would_not_come_back_is_refused_before_sending(self, store, client):
        with unchanged(client), pytest.raises(CodecError, match="would be read back"):
            store.store_metadata({"coordinator:1": 1, "coordinator:2": bytearray(b"x")})

    def test_an_unanswered_call_is_repeated_and_changes_nothing_twice(self, store, client):
        with unanswered(store):
            store.store_metadata({"coordinator:1": 1})
        with unchanged(client):
            store.store_metadata({"coordinator:1": 1})
        store.store_metadata({"coordinator:2": 2}, ["coordinator:1"])
        assert acquire(store, "c" * 32).metadata == {"coordinator:2": 2}

    def test_another_call_in_the_place_of_an_unanswered_one_is_refused(self, store, client):
        with unanswered(store):
            store.store_metadata({"coordinator:1": 1})
        with unchanged(client), pytest.raises(StateRefusedError, match="CONFLICT: revision is '2' by another write"):
            store.store_metadata({"coordinator:1": 2})

    @pytest.mark.parametrize(
        ("damage", "count"),
        [
            *((("hdel", METADATA, f"coordinator:{txid}"), "2 fields") for txid in (1, 2, 3)),
            (("hset", METADATA, "coordinator:4", b"\x01"), "4 fields"),
            (("hset", METADATA, "coordinator:1", b"\x02"), "3 fields"),
        ],
    )
    def test_an_entry_that_is_missing_altered_or_too_many_is_refused_at_the_next_start(
        self, store, open_store, client, damage, count
    ):
        store.store_metadata({f"coordinator:{txid}": txid for txid in (1, 2, 3)})
        client.execute_command(*damage)
        with pytest.raises(
            StateRefusedError, match=rf"cannot start: .*altered some .*metadata; .*checksum over {count}"
        ):
            acquire(open_store(), "c" * 32)


class TestGoneBack:
    """A server that has lost its last writes under a running owner: a prefix of what was applied."""

    def test_takes_no_commit_not_even_the_one_that_would_follow(self, store, open_store, client):
        goes_back(store, open_store, client)
        with unchanged(client):
            for txid in (1, 2):
                reply = store.commit(commit_of(counts(a=1), attempt(txid)))
                assert reply.status is CommitStatus.REGRESSED

    def test_is_continued_from_what_it_holds_by_the_next_owner(self, store, open_store, client):
        goes_back(store, open_store, client)
        successor = open_store()
        acquired = acquire(successor, "c" * 32)
        assert (acquired.committed_txid, acquired.metadata) == (0, {"coordinator:1": 1})
        assert successor.commit(commit_of(counts(a=1), attempt(1))).status is CommitStatus.OK


class TestStatusAndDrop:
    def test_status_needs_no_ownership(self, store, open_store):
        store.store_metadata({"coordinator:1": 1, "coordinator:2": 1})
        store.commit(commit_of(counts(a=1), attempt(1), attempt(2)))
        status = overview_of(open_store())
        assert (status.topology_id, status.committed_txid, status.fence) == ("wc", 2, f"1:1:{NONCE}-0")
        assert (status.generation, status.metadata_count, status.is_dropping) == (GENERATION, 2, False)
        assert (status.topology, status.source_fingerprint) == (DESCRIPTION, "source-1")
        assert status.last_receipt is not None
        assert (status.last_receipt.attempt_id, status.last_receipt.first_txid) == (1002, 1)

    @pytest.mark.case(id="P-08")
    def test_the_group_that_was_committed_last_is_known_attempt_by_attempt(self, started):
        """Whoever has to be told of it after a crash is told of each attempt."""
        owner = started()
        assert owner.last_group() == ()
        owner.commit(commit_of(counts(a=1), attempt(1)))
        assert owner.last_group() == (attempt(1),)
        group = (attempt(2, 2**64 - 1), attempt(3, 0), attempt(4))
        owner.commit(commit_of(counts(a=1), *group))
        assert owner.last_group() == group
        assert started("c" * 32).last_group() == group

    def test_of_a_group_that_has_more_txids_than_receipts_the_last_are_known(self, store):
        store.commit(commit_of(WriteSet(), *map(attempt, range(1, RECEIPTS_KEPT + 7))))
        assert store.last_group() == tuple(map(attempt, range(7, RECEIPTS_KEPT + 7)))

    def test_after_a_run_that_told_late_everything_it_may_not_have_told_is_known(self, store, started, client):
        store.commit(commit_of(counts(a=1), attempt(1)))
        store.commit(commit_of(counts(a=1), attempt(2), notified_txid=0))
        store.commit(commit_of(counts(a=1), attempt(3), attempt(4), notified_txid=1))
        successor = started("c" * 32)
        assert successor.last_group() == (attempt(2), attempt(3), attempt(4))
        successor.commit(commit_of(counts(a=1), attempt(5)))
        assert successor.last_group() == (attempt(5),)
        assert not client.hexists(CONTROL, "told")

    def test_what_is_durable_is_stored_by_level_and_shown_by_status(self, store, open_store):
        store.commit(commit_of(counts(a=1), attempt(1)))
        for level, txid in ((DurabilityLevel.FSYNC, 1), (DurabilityLevel.REPLICA, 7), (DurabilityLevel.FSYNC, 3)):
            store._asked = Durability(level)
            store.note_durable(txid)
        assert overview_of(open_store()).durable == {"fsync": 3, "replica": 7}
        assert store.commit(commit_of(counts(a=1), attempt(2))).status is CommitStatus.OK

    def test_a_barrier_whose_answer_was_lost_is_made_again_once_in_effect(self, store, client):
        with unanswered(store):
            store.note_durable(1)
        revision = client.hget(CONTROL, "revision")
        store.note_durable(1)
        assert client.hget(CONTROL, "revision") == revision
        assert store.commit(commit_of(counts(a=1), attempt(1))).status is CommitStatus.OK

    def test_a_drop_removes_many_keys_and_a_running_owner_stays_out(self, open_store, client):
        store, write_set = open_store(), WriteSet()
        acquire(store, topology=declaring("counts", *(described_state(f"s{i}", StateKind.VALUE) for i in range(700))))
        for i in range(700):
            write_set.state(f"s{i}", StateKind.VALUE, ValueType.INT).put(VALUE_FIELD, i)
        store.commit(commit_of(write_set))
        assert admin_of(open_store()).drop().deleted == 703
        assert store.commit(commit_of(counts(a=1), attempt(2))).status is CommitStatus.DROPPED
        assert client.keys("*") == []

    def test_an_unfinished_drop_blocks_until_it_is_finished(self, store, open_store, client):
        store.commit(commit_of(counts(a=1)))
        fence = client.hget(CONTROL, "fence")
        client.execute_command("FCALL", "txbatch_10_drop_begin", "3", *OWN, fence, "e" * 32)
        assert store.commit(commit_of(counts(a=1), attempt(2))).status is CommitStatus.DROPPED
        with pytest.raises(FencedError, match="topology 'wc' was dropped during this run"):
            store.store_metadata({"coordinator:2": 1})
        with pytest.raises(StateRefusedError, match="finish it with `txbatch drop wc`"):
            acquire(open_store(), "c" * 32)
        assert overview_of(open_store()).is_dropping
        assert admin_of(open_store()).drop().deleted == 4
        assert acquire(open_store(), "c" * 32).committed_txid == 0

    def test_what_was_dropped_and_is_put_back_by_hand_can_be_run_again(self, started, open_store, client):
        """That a generation was dropped once decides nothing: it only explains why its state is gone."""
        acquire(open_store())
        kept = client.hgetall(CONTROL)
        admin_of(open_store()).drop()
        client.hset(CONTROL, mapping=kept)
        again = started("c" * 32)
        again.store_metadata({"coordinator:1": 1})

    def test_of_state_without_control_only_what_the_caller_names_is_dropped(self, open_store, client):
        client.hset("{wc}:counts", "a", 1)
        client.hset("{wc}:counts:2026-11-21", "a", 1)
        client.set("{wc}:labels", "other")
        assert admin_of(open_store()).drop() == Dropped(0, ("{wc}:counts", "{wc}:counts:2026-11-21", "{wc}:labels"))
        assert admin_of(open_store()).drop(["counts"]) == Dropped(2, ("{wc}:labels",))
        assert client.keys("*") == [b"{wc}:labels"]

    def test_a_drop_of_which_the_server_has_lost_a_part_is_not_done(self, started, open_store, client):
        """The server is set back by one write before the last call: the state is there again."""
        owner = started()
        owner.commit(commit_of(counts(a=1)))
        dropper = admin_of(open_store())
        send = dropper._connection.function

        def function(name, *arguments, **more):
            if name == "drop_end":
                client.hset(CONTROL, "dropping", begun["dropping"])
                client.hset("{wc}:counts", "a", 1)
            reply = send(name, *arguments, **more)
            if name == "drop_begin":
                begun["dropping"] = client.hget(CONTROL, "dropping")
            return reply

        begun: dict[str, bytes] = {}
        with (
            mock.patch.object(dropper._connection, "function", function),
            pytest.raises(StateRefusedError, match=r"has lost a part of this drop; .* drop the topology again"),
        ):
            dropper.drop()
        assert client.hget("{wc}:counts", "a") == b"1"
        assert dropper.drop().deleted == 3
        assert client.keys("*") == []

    def test_a_late_call_of_a_drop_spares_what_was_started_since(self, started, open_store, client):
        acquire(open_store())
        fence = client.hget(CONTROL, "fence")
        client.execute_command("FCALL", "txbatch_10_drop_begin", "3", *OWN, fence, "e" * 32)
        ours = client.hget(CONTROL, "fence")
        assert client.execute_command("FCALL", "txbatch_10_drop_end", "3", *OWN, ours, "0")[0] == b"OK"
        assert client.execute_command("FCALL", "txbatch_10_drop_end", "3", *OWN, ours, "0")[0] == b"ALREADY"
        owner = started()
        owner.commit(commit_of(counts(a=1)))
        with unchanged(client):
            late_begin = client.execute_command("FCALL", "txbatch_10_drop_begin", "3", *OWN, "9:9", "e" * 32)
            assert late_begin[0] == b"RACED"
            for given in (ours, b""):
                late_keys = client.execute_command(
                    "FCALL", "txbatch_10_drop_keys", "2", CONTROL, "{wc}:counts", given, "1"
                )
                late_end = client.execute_command("FCALL", "txbatch_10_drop_end", "3", *OWN, given, "1")
                assert (late_keys[0], late_end[0]) == (b"FENCED", b"FENCED")


class TestReader:
    @pytest.fixture
    def reader(self, client):
        return RedisReader(
            "redis://under-test", "wc", nonce=NONCE, connection=RedisConnection(client, "under-test", timeout_s=1)
        )

    def test_reads_come_with_the_txid_they_were_made_at(self, store, reader):
        store.commit(
            commit_of(
                WriteSet(
                    {
                        "h": writes(StateKind.HASH, ValueType.INT, puts={7: 1, 8: 2}),
                        "s": writes(StateKind.SET, ValueType.STR, puts={"m": True}),
                        "z": writes(StateKind.SORTED_SET, ValueType.FLOAT, puts={"a": 0.1}),
                        "v": writes(StateKind.VALUE, ValueType.BYTES, puts={VALUE_FIELD: b"\xff"}),
                    }
                )
            )
        )
        assert reader.read("h", StateKind.HASH, [8, 9, 7], 1) == [b"2", None, b"1"]
        assert reader.read("s", StateKind.SET, ["m", "n"], 1) == [b"1", None]
        assert [score and float(score) for score in reader.read("z", StateKind.SORTED_SET, ["a", "b"], 1)] == [
            0.1,
            None,
        ]
        assert reader.read("v", StateKind.VALUE, [VALUE_FIELD], 1) == [b"\xff"]
        assert reader.read("none", StateKind.VALUE, [VALUE_FIELD], 1) == [None]
        assert reader.read("h", StateKind.HASH, list(range(2500)), 1)[6:9] == [None, b"1", b"2"]
        with pytest.raises(StaleReadError, match="is at txid 1, expected 0"):
            reader.read("h", StateKind.HASH, [7], 0)

    @pytest.mark.parametrize(
        ("damage", "as_of_txid", "message"),
        [
            (NO_DAMAGE, 3, "is at txid 0, expected 3: the server has returned"),
            (("set", "{wc}:h", "x"), 0, "is a string on the server, expected a hash"),
            (("del", CONTROL), 0, r"has lost this topology's state.*wc.*control' is gone"),
        ],
    )
    @pytest.mark.usefixtures("store")
    def test_what_is_not_the_state_of_its_run_is_refused(self, reader, client, damage, as_of_txid, message):
        client.execute_command(*damage)
        with pytest.raises(StateRefusedError, match=message):
            reader.read("h", StateKind.HASH, ["a"], as_of_txid)

    def test_what_another_run_has_made_of_the_state_is_not_shown(self, store, open_store, reader):
        assert reader.read("h", StateKind.HASH, [7], 0) == [None]
        acquire(open_store(), "c" * 32)
        with pytest.raises(StaleReadError):
            reader.read("h", StateKind.HASH, [7], 0)


class TestLibrary:
    def test_a_flushed_library_is_loaded_again_by_the_same_call(self, store, client):
        client.function_flush()
        with unanswered(store):
            assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK
        client.function_flush()
        assert store.commit(commit_of(counts(a=1))).status is CommitStatus.ALREADY
        client.function_flush()
        assert overview_of(store).committed_txid == 1

    def test_other_code_under_our_name_is_replaced(self, started, client):
        client.function_load(
            f"#!lua name={LIBRARY_NAME}\nredis.register_function('txbatch_10_commit', function() return 'no' end)"
        )
        store = started()
        assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK


class TestUrlFile:
    def test_url_is_kept_where_only_the_user_reads_it(self, tmp_path, monkeypatch):
        monkeypatch.delenv("TXBATCH_REDIS_URL", raising=False)
        path = save_redis_url("redis://:secret@host", tmp_path)
        path = save_redis_url("redis://:secret2@host", tmp_path)
        assert (tmp_path / "redis_url").stat().st_mode & 0o777 == 0o600
        assert load_redis_url(path) == "redis://:secret2@host"
        assert [file.name for file in tmp_path.iterdir()] == ["redis_url"]

    def test_file_open_to_others_is_refused(self, tmp_path):
        path = save_redis_url("redis://:secret@host", tmp_path)
        (tmp_path / "redis_url").chmod(0o640)
        with pytest.raises(StateRefusedError, match="chmod 600"):
            load_redis_url(path)

    @pytest.mark.parametrize("given", ["rediss://elsewhere", "rediss://elsewhere\r\n", " rediss://elsewhere "])
    def test_environment_serves_hosts_without_the_file(self, monkeypatch, given):
        monkeypatch.setenv("TXBATCH_REDIS_URL", given)
        assert load_redis_url(None) == "rediss://elsewhere"
        assert load_redis_url("/nowhere/redis_url") == "rediss://elsewhere"

    def test_neither_is_a_clear_error(self, monkeypatch):
        monkeypatch.setenv("TXBATCH_REDIS_URL", "\n")
        with pytest.raises(StateRefusedError, match="'/nowhere/redis_url' is not on this host and TXBATCH_REDIS_URL"):
            load_redis_url("/nowhere/redis_url")
