"""Rights: what `txbatch acl` prints is enough, and whatever is missing is refused before the first write.

Lua does not roll back: a function that met a missing right half-way would leave a torn commit behind.
"""

from __future__ import annotations

import re
from contextlib import contextmanager

import fakeredis
import pytest
import redis

from state.commits.commit import CommitStatus
from state.commits.write_set import WriteSet
from state.errors import StateRefusedError
from state.keys import Keys
from state.records.durability import Durability, DurabilityLevel, ServerDurability
from state.redis_client.connection import RedisConnection, connect
from state.redis_client.function_library import library_code
from state.redis_client.rights import (
    COMMANDS,
    COMMANDS_OF_EXPIRING_FIELDS,
    COMMANDS_ON_KEYS,
    COMMANDS_TO_VERIFY,
    acl_rules,
    require_all_rights,
)
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from state.values.state_kind import VALUE_FIELD, StateKind, ValueType
from tests.conftest import redis_program, running_server
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import (
    NONCE,
    acquire,
    attempt,
    commit_of,
    declaring,
    described_state,
    dump,
    unchanged,
    writes,
)

pytestmark = pytest.mark.redis

EVERY_WRITE = WriteSet(
    {
        "h": writes(StateKind.HASH, ValueType.INT, puts={"p": 1}, increments={"i": 10}, deletes={"d": True}),
        "v": writes(StateKind.VALUE, ValueType.INT, increments={VALUE_FIELD: 1}),
        "w": writes(StateKind.VALUE, ValueType.STR, deletes={VALUE_FIELD: True}),
        "s": writes(StateKind.SET, ValueType.STR, puts={"m": True}, deletes={"n": True}),
        "z": writes(StateKind.SORTED_SET, ValueType.FLOAT, increments={"a": [0.5]}, deletes={"b": True}),
        "l": writes(StateKind.LIST, ValueType.STR, appends=["x"]),
        "k": writes(StateKind.LIST, ValueType.STR, deletes={VALUE_FIELD: True}),
    }
)


@pytest.fixture(params=["valkey", "redis"])
def url(request):
    url = request.getfixturevalue("valkey_url" if request.param == "valkey" else "redis_server_url")
    with connect(url) as client:
        client.flushall()
        client.function_flush()
    return url


@pytest.fixture
def client(url):
    with connect(url) as client:
        yield client


@pytest.fixture
def limited(url, client):
    """The URL of a user with exactly the rights that are printed."""
    client.execute_command("ACL", "SETUSER", "alice", *acl_rules(Keys("wc")), ">canary")
    yield url.replace("unix://", "unix://alice@") + "?password=canary"
    client.execute_command("ACL", "DELUSER", "alice")


@contextmanager
def opened(url):
    store = RedisStore(url, "wc")
    try:
        yield store
    finally:
        store.close()


def whole_life(url):
    """Everything a run, a reader and a drop ask of the server."""
    with opened(url) as store:
        store.check_server()
        acquire(store, topology=declaring(*map(described_state, "hvwszlk")))
        store.store_metadata({"coordinator:1": 1, "coordinator:2": 2})
        reply = store.commit(commit_of(EVERY_WRITE, forget=("coordinator:1",)))
        assert reply.status is CommitStatus.OK
        reader = RedisReader(url, "wc", nonce=NONCE, connection=store._connection)
        for name, kind in (("h", StateKind.HASH), ("v", StateKind.VALUE), ("s", StateKind.SET)):
            reader.read(name, kind, ["a"], 1)
        reader.read("z", StateKind.SORTED_SET, ["a"], 1)
        store.confirm()
        assert store.last_group() == (attempt(1),)
        assert overview_of(store).committed_txid == 1
        assert admin_of(store).drop().deleted == 9


def test_the_printed_rights_are_enough(limited, client):
    whole_life(limited)
    assert client.keys("*") == []


def test_fields_that_expire_take_rights_of_their_own(client, url):
    try:
        client.execute_command("HPEXPIREAT", "none", "1", "FIELDS", "1", "f")
    except redis.ResponseError:
        with (
            opened(url) as store,
            pytest.raises(StateRefusedError, match="cannot have fields of a hash expire: it lacks HPEXPIREAT"),
        ):
            store.check_server(fields_expire=True)
        return
    for is_granted in (True, False):
        client.execute_command("ACL", "SETUSER", "alice", *acl_rules(Keys("wc"), fields_expire=is_granted), ">canary")
        with opened(url.replace("unix://", "unix://alice@") + "?password=canary") as store:
            if is_granted:
                store.check_server(fields_expire=True)
            else:
                with pytest.raises(StateRefusedError, match="grant what `txbatch acl wc --expiring-fields` prints"):
                    store.check_server(fields_expire=True)
    client.execute_command("ACL", "DELUSER", "alice")


@pytest.mark.parametrize("command", [*COMMANDS_ON_KEYS, "FCALL", "FCALL_RO", "INFO"])
def test_each_missing_right_is_refused_at_start_before_any_write(limited, client, command):
    client.execute_command("ACL", "SETUSER", "alice", f"-{command.lower()}")
    with pytest.raises(StateRefusedError, match=r"does not let this user .*`txbatch acl") as refused:
        whole_life(limited)
    assert command in str(refused.value).upper()
    assert client.keys("*") == []


def test_a_run_that_needs_a_level_is_refused_with_the_command_that_grants_it(limited, client, monkeypatch):
    synced = ServerDurability(has_append_file=True, appendfsync="always")
    monkeypatch.setattr("state.redis_owner.slot.measure_durability", lambda *_: synced)
    client.execute_command("ACL", "SETUSER", "alice", "-hset")
    with opened(limited) as store, pytest.raises(StateRefusedError, match="`txbatch acl wc --durability fsync` prints"):
        store.check_server(Durability(DurabilityLevel.FSYNC, because="done files are deleted"))


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"FCALL", "FCALL_RO", "INFO"}))
def test_any_other_missing_right_is_refused_before_the_write_or_not_needed(limited, client, command):
    with opened(limited) as store:
        store.check_server()
        acquire(store)
    before = dump(client)
    client.execute_command("ACL", "SETUSER", "alice", f"-{command.lower()}")
    with opened(limited) as store:
        try:
            assert admin_of(store).drop().deleted == 1
        except StateRefusedError as error:
            assert command.lower() in str(error)  # noqa: PT017 - either outcome is right, half a drop is not
            assert dump(client) == before
        else:
            assert client.keys("*") == []


@pytest.mark.parametrize("command", sorted({"HSET", "HDEL", "SET", "DEL", "SADD", "SREM", "ZADD", "ZREM", "RPUSH"}))
def test_a_right_that_is_taken_away_under_a_run_tears_no_commit(limited, client, command):
    with opened(limited) as store:
        store.check_server()
        acquire(store)
        assert store.commit(commit_of(EVERY_WRITE, attempt(1))).status is CommitStatus.OK
        with unchanged(client):
            client.execute_command("ACL", "SETUSER", "alice", f"-{command.lower()}")
            with pytest.raises(StateRefusedError, match=f"this user may not run {command} on key '.wc.:.*'; nothing"):
                store.commit(commit_of(EVERY_WRITE, attempt(2)))
        client.execute_command("ACL", "SETUSER", "alice", f"+{command.lower()}")
        assert store.commit(commit_of(EVERY_WRITE, attempt(2))).status is CommitStatus.OK
    assert client.hget("{wc}:h", "i") == b"20"


@pytest.mark.parametrize("command", ["client|setname", "client|list"])
def test_a_user_who_may_not_name_or_list_connections_runs_and_drops_all_the_same(limited, client, command):
    with opened(limited) as run, opened(limited) as other:
        run.check_server()
        acquire(run)
        assert admin_of(other).connected_runs() == 1
    client.execute_command("ACL", "SETUSER", "alice", f"-{command}")
    whole_life(limited)
    with opened(limited) as run, opened(limited) as other:
        acquire(run)
        assert admin_of(other).connected_runs() == 0
        run.confirm()


def test_a_right_to_other_keys_only_is_refused(limited, client):
    client.execute_command("ACL", "SETUSER", "alice", "resetkeys", "~{other}:*")
    with pytest.raises(StateRefusedError, match="does not let this user"):
        whole_life(limited)
    assert client.keys("*") == []


def test_a_key_that_may_not_be_written_tears_no_commit(limited, client):
    with opened(limited) as store:
        store.check_server()
        acquire(store)
        with unchanged(client):
            rules = ["resetkeys", "~{wc}:txbatch:*", "~{wc}:[hvwzlk]", "%R~{wc}:s"]
            client.execute_command("ACL", "SETUSER", "alice", *rules)
            with pytest.raises(StateRefusedError, match=r"(?i)no permissions to access"):
                store.commit(commit_of(EVERY_WRITE))


@pytest.mark.parametrize("command", ["HDEL", "RPUSH", "HSET", "UNLINK"])
@pytest.mark.parametrize("new_name", ["", "other"])
def test_a_renamed_command_is_refused_before_any_write(command, new_name):
    with running_server(redis_program(), "--rename-command", command, new_name) as url:
        with pytest.raises(StateRefusedError, match=f"{command} on keys.*undo any rename-command"):
            whole_life(url)
        with connect(url) as client:
            assert client.keys("*") == []


def test_every_command_of_the_library_is_among_the_rights():
    called = {name.upper() for name in re.findall(r"redis\.call\('(\w+)'", library_code())}
    planned = set(re.findall(r"(?:plan_\w+|step)\('([A-Z]+)'", library_code()))
    chosen = {
        name for name in re.findall(r"'([A-Z]{3,})'", library_code()) if name in ("ZMSCORE", "HMGET", "SMISMEMBER")
    }
    of_an_import, of_fields = {"LLEN", "RENAME"}, {"HPEXPIREAT"}
    on_keys = {name.partition("|")[0] for name in COMMANDS_ON_KEYS}
    assert called | planned | chosen == on_keys | of_an_import | of_fields
    assert of_fields <= set(COMMANDS_OF_EXPIRING_FIELDS)
    assert of_an_import <= set(COMMANDS_TO_VERIFY)


def test_a_server_without_the_check_is_taken_at_its_word():
    with fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,))) as client:
        connection = RedisConnection(client, "in memory", timeout_s=1)
        connection.load_library()
        require_all_rights(connection, Keys("wc"))
