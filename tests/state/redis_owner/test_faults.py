"""Faults of real servers: timeouts, rights, memory, roles, eviction."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager, suppress

import pytest
import redis

from state.commits.commit import CommitStatus
from state.errors import StateRefusedError
from state.keys import Keys
from state.redis_client.connection import RedisConnection
from state.redis_client.rights import acl_rules
from state.redis_owner.store import RedisStore
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import attempt, commit_of, counts, owner_on, unchanged

pytestmark = pytest.mark.redis
SPIN = "local began = os.clock() repeat until os.clock() - began > 0.8"


@pytest.fixture
def url(redis_backend):
    return redis_backend.url


@pytest.fixture
def client(redis_backend):
    return redis_backend.client()


@pytest.fixture
def store(url):
    store = owner_on(url)
    yield store
    store.close()


@contextmanager
def busy(client):
    """The server is busy with a script while the body runs, and done afterwards."""
    connection, asking = (client.connection_pool.get_connection() for _ in range(2))
    client.config_set("busy-reply-threshold", "600000")  # so that it refuses nobody, however slow this machine is
    connection.send_command("EVAL", SPIN, 0)
    try:
        asking.send_command("PING")
        while asking.can_read(0.02):  # it has not begun
            asking.read_response()
            asking.send_command("PING")
        yield
    finally:
        connection.read_response()
        client.config_set("busy-reply-threshold", "5000")
        asking.disconnect()
        for each in (connection, asking):
            client.connection_pool.release(each)


def impatient(store, url):
    """The same owner through an open connection that gives up after 300 ms: well before the server is done."""
    other = RedisStore(f"{url}?socket_timeout=0.3", "wc")
    other._owned.begin(store.ownership)
    overview_of(other)
    return other


def test_an_unknown_outcome_is_asked_again_until_it_is_known(store, url, client):
    other = impatient(store, url)
    with busy(client):
        reply = other.commit(commit_of(counts(a=1)))
    other.close()
    assert reply.status is CommitStatus.ALREADY
    assert client.hgetall("{wc}:counts") == {b"a": b"1"}


def test_a_killed_connection_is_replaced(store, client):
    assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK
    client.client_kill_filter(_type="normal", skipme=True)
    assert store.commit(commit_of(counts(a=1), attempt(2))).status is CommitStatus.OK


def test_a_fresh_commit_is_one_call(store, client):
    client.config_resetstat()
    store.commit(commit_of(counts(a=1)))
    calls = {name: stat["calls"] for name, stat in client.info("commandstats").items()}
    assert calls["cmdstat_fcall"] == 1


def test_out_of_memory_stops_and_changes_nothing(store, client):
    with unchanged(client):
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StateRefusedError, match="is out of memory; raise maxmemory"):
                store.commit(commit_of(counts(a=1)))
        finally:
            client.config_set("maxmemory", 0)
    assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK


def test_a_full_server_can_still_be_dropped(store, client):
    store.commit(commit_of(counts(a=1)))
    client.config_set("maxmemory", 1)
    try:
        assert admin_of(store).drop().deleted == 4  # control, receipts, history, state
    finally:
        client.config_set("maxmemory", 0)
    assert client.keys("*") == []


def test_an_eviction_policy_is_refused_by_name(store, client):
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StateRefusedError, match=r"maxmemory-policy 'allkeys-lru'.*set it to noeviction"):
            store.check_server()
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_a_replica_is_refused(store, url, client):
    client.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(StateRefusedError, match="is a slave"):
            store.check_server()
        with pytest.raises(StateRefusedError, match="is a replica; give the address of its primary"):
            store.commit(commit_of(counts(a=1)))
    finally:
        client.replicaof("NO", "ONE")


@contextmanager
def user(client, *rules):
    client.execute_command("ACL", "SETUSER", "alice", "reset", "on", ">canary", *rules)
    try:
        yield
    finally:
        client.execute_command("ACL", "DELUSER", "alice")


def as_alice(url, password):
    return f"{url.replace('unix://', 'unix://alice@')}?password={password}"


def refused(url):
    with closing(RedisStore(url, "wc")) as store, pytest.raises(StateRefusedError) as raised:
        store.check_server()
    return str(raised.value)


def test_a_wrong_password_is_refused_without_showing_it(url, client):
    with user(client, "~*", "+@all"):
        message = refused(as_alice(url, "wrong-canary"))
    assert "refused the user name or password" in message
    assert "canary" not in message


def test_a_missing_password_is_refused(url, client):
    client.config_set("requirepass", "canary")
    try:
        assert "asks for a password" in refused(url)
    finally:
        client.config_set("requirepass", "")


def test_a_user_without_function_rights_uses_what_others_loaded(store, url, client):
    with user(client, *acl_rules(Keys("wc"), loads_functions=False), ">canary"):
        limited = owner_on(as_alice(url, "canary"), nonce="c" * 32)
        assert limited.commit(commit_of(counts(a=1))).status is CommitStatus.OK
        limited.close()


WAITING = """#!lua name=waiting
redis.register_function('wait_for_go', function(keys)
  if redis.call('EXISTS', keys[1]) == 1 then return 'gone' end
  while true do end
end)"""


@pytest.mark.parametrize("backend", ["valkey", "redis"], indirect=True)
def test_a_call_that_somebody_has_killed_is_repeated(backend):
    client, killer = backend.client(), backend.client()
    (threshold,) = client.config_get("busy-reply-threshold").values()
    client.config_set("busy-reply-threshold", "1")
    client.function_load(WAITING)

    def kill_until_it_may_go() -> None:
        while True:
            try:
                killer.set("go", "1")
            except redis.ResponseError:  # busy
                with suppress(redis.ResponseError):
                    killer.execute_command("FUNCTION", "KILL")
                killed.set()
            else:
                if killed.is_set():
                    return
                killer.delete("go")

    killed = threading.Event()
    thread = threading.Thread(target=kill_until_it_may_go)
    thread.start()
    try:
        connection = RedisConnection(client, "redis://here", timeout_s=30.0)
        assert connection.call("FCALL", "wait_for_go", "1", "go") == b"gone"
    finally:
        thread.join()
        client.config_set("busy-reply-threshold", threshold)
