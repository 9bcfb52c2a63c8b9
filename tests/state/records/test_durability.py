"""What a server can lose, and which levels it can confirm: every case a sentence."""

from __future__ import annotations

from functools import partial

import fakeredis
import pytest
import redis

from state.errors import StateRefusedError
from state.records.durability import (
    ALMOST_ALWAYS,
    GUARANTEED,
    Durability,
    DurabilityLevel,
    DurabilityReport,
    ServerDurability,
    confirmed_line,
    durable_txids,
)
from state.redis_admin.topology import RedisTopology
from state.redis_client.connection import RedisConnection
from state.redis_owner.measured_durability import measure_durability
from state.redis_server.program import find_server_program
from tests.conftest import redis_program, running_server

FSYNC, REPLICA = Durability(DurabilityLevel.FSYNC), Durability(DurabilityLevel.REPLICA, 2)
SERVICE = Durability(DurabilityLevel.SERVICE)


def synced(appendfsync):
    """A server with an append-only file."""
    return ServerDurability(has_append_file=True, appendfsync=appendfsync)


without_file = partial(ServerDurability, has_append_file=False)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (ServerDurability(), "everything: it does not say that it keeps anything on disk"),
        (synced("always"), "nothing it has answered (appendfsync always)"),
        (synced(ALMOST_ALWAYS), "what it has answered while it rewrote its file (no-appendfsync-on-rewrite yes)"),
        (synced("everysec"), "its last second or two of commits (appendfsync everysec)"),
        (synced("no"), "its last half minute of commits or more (appendfsync no)"),
        (synced(""), "its last commits (it keeps an append-only file; this user may not read how often it syncs it)"),
        (without_file(snapshots=True), "everything since its last snapshot (appendonly no)"),
        (without_file(snapshots=False), "everything (appendonly no, no snapshots)"),
        (without_file(), "everything since its last snapshot, if it makes any (appendonly no)"),
    ],
)
def test_what_a_power_cut_may_take_is_said(found, sentence):
    assert found.can_lose() == sentence


@pytest.mark.parametrize(
    ("found", "synced_txid", "sentence"),
    [
        (synced("everysec"), 0, "a power cut may take from this server its last second or two of commits"),
        (synced("everysec"), 7, "nothing up to txid 7, which is on disk; of later ones, as the server is set now, a "),
        (synced("everysec"), 9, "nothing of this topology: all that is committed is on disk; the server, as it is se"),
        (synced("always"), 7, "a power cut may take from this server noth"),
        (without_file(snapshots=False), 9, "a power cut may take from this server everyth"),
    ],
    ids=["never asked", "asked earlier", "asked last", "always", "no append-only file any more"],
)
def test_what_a_run_had_put_on_disk_cannot_be_lost_whatever_the_server_is_set_to_now(found, synced_txid, sentence):
    assert found.can_lose_of(committed_txid=9, synced_txid=synced_txid).startswith(sentence)


@pytest.mark.parametrize("level", DurabilityLevel)
def test_only_the_levels_above_memory_wait(level):
    assert Durability(level).waits == (level in (DurabilityLevel.FSYNC, DurabilityLevel.REPLICA))


def test_level_service_is_the_users_word_and_is_called_that():
    report = DurabilityReport(SERVICE, GUARANTEED)
    assert ServerDurability().lacks(SERVICE) == ""
    assert report.first_line() == (
        "a power cut may take from this server nothing it has answered, by the service's contract, as you said; what "
        "is released upstream waits for its answer only (durability service)"
    )
    assert report.last_line(7) == "durable up to txid 7 by the service's contract, as you said (durability service)"
    assert confirmed_line("service", 7).endswith(
        "by the service's contract, as the run's user said (durability service)"
    )
    assert confirmed_line("fsync", 7) == "up to txid 7 at durability fsync"


def test_any_server_is_taken_at_level_service_and_says_so():
    store = RedisTopology("redis://in-memory", "wc", client=fakeredis.FakeRedis(version=(7,)))
    store.check_server(SERVICE)
    assert store.durability == DurabilityReport(SERVICE, GUARANTEED)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (ServerDurability(), "it does not say that it keeps anything on disk"),
        (without_file(), "CONFIG SET appendonly yes"),
        (synced(""), "grant what `txbatch acl TOPOLOGY --durability fsync` prints"),
        (ServerDurability("valkey 9.1.2", has_append_file=True, appendfsync="everysec"), "under which valkey 9.1.2 "),
        (synced(ALMOST_ALWAYS), "set no-appendfsync-on-rewrite no"),
    ],
)
def test_a_server_that_cannot_confirm_level_fsync_lacks_something_that_is_named(found, part):
    assert part in found.lacks(FSYNC)
    assert found.lacks(Durability()) == ""


def test_a_server_that_syncs_always_or_has_as_many_replicas_as_have_to_confirm_lacks_nothing():
    assert synced("always").lacks(FSYNC) == ""
    assert ServerDurability(confirms_replicas=True, replicas=2).lacks(REPLICA) == ""
    one = ServerDurability(confirms_replicas=True, replicas=1)
    assert "it has 1 connected replica, and 2 must confirm" in one.lacks(REPLICA)
    assert "does not let this user call WAIT" in ServerDurability(replicas=3).lacks(REPLICA)


def test_the_last_line_says_what_was_confirmed_or_what_can_still_be_lost():
    assert DurabilityReport(FSYNC, "x").last_line(1_234) == (
        "on disk up to txid 1,234, confirmed by the server (durability fsync)"
    )
    assert DurabilityReport(REPLICA, "x").last_line(7) == "on 2 replicas up to txid 7, confirmed (durability replica)"
    assert DurabilityReport(Durability(), "a lot").last_line(7) == "", "the first line has said it"


def test_what_is_durable_is_read_from_the_control_key():
    assert durable_txids({"durable_fsync": "12", "durable_replica": "x", "committed": "40"}) == {"fsync": 12}


def test_a_server_in_memory_is_refused_at_any_level_that_waits():
    store = RedisTopology("redis://in-memory", "wc", client=fakeredis.FakeRedis(version=(7,)))
    with pytest.raises(StateRefusedError, match="cannot confirm durability fsync: it does not say that it keeps any"):
        store.check_server(FSYNC)


# Real servers


@pytest.mark.redis
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--appendonly", "yes", "--appendfsync", "everysec"), (True, "everysec", False)),
        (("--appendonly", "yes", "--appendfsync", "always"), (True, "always", False)),
        (("--appendonly", "no", "--save", "900 1"), (False, "", True)),
        (("--appendonly", "no", "--save", ""), (False, "", False)),
    ],
)
def test_a_real_server_is_measured(options, found):
    for program in (find_server_program(), redis_program()):
        with running_server(program, *options) as url, redis.Redis.from_url(url) as client:
            connection = RedisConnection(client, url, timeout_s=5.0)
            measured = measure_durability(connection, client.info(), DurabilityLevel.REPLICA)
            assert (measured.has_append_file, measured.appendfsync, measured.snapshots) == found
            assert measured.confirms_replicas
            assert measured.replicas == 0
            client.execute_command("ACL", "SETUSER", "default", "-config", "-wait")
            measured = measure_durability(connection, client.info(), DurabilityLevel.REPLICA)
            assert (measured.has_append_file, measured.appendfsync, measured.snapshots) == (found[0], "", None)
            assert not measured.confirms_replicas
