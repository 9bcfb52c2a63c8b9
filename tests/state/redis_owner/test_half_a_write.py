"""A server whose append-only file was cut in the middle of a write never gets away with half of it.

When Redis 7 loads such a file it drops the write, but leaves its first commands in the file; the next restart applies
them. Newer servers cut the file where the write began.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from state import HashState
from state.errors import StateRefusedError
from state.records.stored_records import StoredPiece
from state.redis_admin.importing import RedisImport
from state.redis_admin.snapshots import snapshot
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from state.redis_server.embedded import EmbeddedServer
from state.redis_server.program import find_server_program
from state.values.state_kind import StateKind
from tests.support.chaos.jobs import await_true
from tests.support.chaos.nemesis.servers import ALWAYS, Server
from tests.support.stores.admin import admin_of, overview_of
from tests.support.stores.builders import EXPORTED, acquire, attempt, commit_of, counts, owner_on

pytestmark = [pytest.mark.redis, pytest.mark.timeout(120)]
EVERY_BYTES = 61
"""The last write is cut at every so many bytes, so that each of its commands is hit."""


@pytest.fixture(params=["redis", "valkey"])
def server(request, tmp_path_factory) -> Iterator[Server]:
    program = shutil.which("redis-server") if request.param == "redis" else find_server_program()
    if program is None:
        pytest.skip("redis-server is missing")
    made = Server(program, tmp_path_factory.mktemp("s"))
    made.fsync = ALWAYS
    yield made
    made.kill()


def log_of(server: Server) -> Path:
    (log,) = server.folder.glob("appendonlydir/*.incr.aof")
    return log


def kill(pid: int) -> None:
    """Ends a server of ours, and waits until its supervisor has noticed."""
    os.kill(pid, signal.SIGKILL)
    assert await_true(lambda: not Path(f"/proc/{pid}").exists(), 10.0)


def stored(server: Server) -> dict[bytes, bytes]:
    with server.client() as client:
        found: dict[bytes, bytes] = client.hgetall("{t}:counts")
        return found


def killed_within(server: Server, write: Callable[[], object], place: Callable[[bytes, int], int]) -> None:
    """Kills a server after a write, and starts it again with a file that ends within it.

    `place` returns how many bytes stay, given all of them and how many there were before the write.
    """
    before = log_of(server).stat().st_size
    write()
    server.kill()
    data = log_of(server).read_bytes()
    log_of(server).write_bytes(data[: place(data, before)])
    server.start()


def test_half_a_write_that_the_server_has_kept_is_refused_or_not_there(server):
    server.start()
    first = owner_on(server.url, "t", "a" * 32)
    first.commit(commit_of(counts(x=1, y=1), attempt(1)))
    whole = log_of(server).stat().st_size
    first.store_metadata({"coordinator:2": "two"})
    first.commit(commit_of(counts(x=10, y=10, z=10), attempt(2)))
    first.close()
    server.kill()
    data = log_of(server).read_bytes()
    refused = 0
    for size in range(whole + 1, len(data), EVERY_BYTES):
        log_of(server).write_bytes(data[:size])
        server.start()
        second = owner_on(server.url, "t", "c" * 32)
        status = overview_of(second)
        assert status.committed_txid == 1
        second.commit(commit_of(counts(x=100), attempt(2)))
        second.close()
        assert stored(server) == {b"x": b"101", b"y": b"1"}
        server.kill()
        server.start()  # what the file still holds of the first owner's write is applied now
        third = RedisStore(server.url, "t")
        try:
            acquire(third, "d" * 32)
        except StateRefusedError as error:
            assert "part of a write" in str(error)  # noqa: PT017 - a server may also be right
            refused += 1
        else:
            assert stored(server) == {b"x": b"101", b"y": b"1"}
        third.close()
        server.kill()
    assert refused or server.program_name != "redis-server"


def test_an_owner_that_goes_on_over_half_a_write_is_stopped(server):
    server.start()
    first = owner_on(server.url, "t", "a" * 32)
    first.commit(commit_of(counts(x=1, y=1), attempt(1)))
    half = commit_of(counts(x=10, y=10, z=10), attempt(2))
    killed_within(server, lambda: first.commit(half), lambda data, before: (before + len(data)) // 2)
    first.close()
    second = owner_on(server.url, "t", "c" * 32)
    second.commit(commit_of(counts(x=100), attempt(2)))
    server.kill()
    server.start()
    if b"10" in stored(server).values():
        with pytest.raises(StateRefusedError, match="part of a write"):
            second.confirm()
    else:
        second.confirm()
    second.close()


def test_an_embedded_server_rewrites_a_file_that_it_has_cut(server, tmp_path_factory):
    with (
        EmbeddedServer(tmp_path_factory.mktemp("e"), program=server.program) as embedded,
        redis.Redis.from_url(embedded.url) as client,
    ):
        store = RedisStore(embedded.url, "t", revive=embedded.ensure)
        store.check_server()
        acquire(store)
        client.config_set("appendfsync", "always")  # with a busy disk, it may put off a write for 2 s
        for txid in (1, 2):
            store.commit(commit_of(counts(x=txid, y=txid, z=txid), attempt(txid)))
        (log,) = embedded.data_dir.glob("appendonlydir/*.incr.aof")
        kill(client.info("server")["process_id"])
        with log.open("rb+") as file:
            file.truncate(log.stat().st_size - 150)
        embedded.ensure()
        client.config_set("appendfsync", "always")
        acquire(store, "c" * 32)
        store.commit(commit_of(counts(x=100), attempt(2)))
        kill(client.info("server")["process_id"])
        embedded.ensure()
        assert client.hgetall("{t}:counts") == {b"x": b"101", b"y": b"1", b"z": b"1"}
        store.confirm()
        store.close()


@pytest.fixture
def torn(store: RedisStore, client) -> RedisStore:
    """A store whose server has applied the first command of a write that it had lost."""
    store.commit(commit_of(counts(x=1), attempt(1)))
    client.hincrby("{wc}:txbatch:control", "begun", 1)
    return store


def test_two_lives_of_a_topology_do_not_count_their_writes_alike(open_store, client):
    """A server that has lost its end may apply the beginning of one life under a takeover of the other."""
    store = open_store()
    acquire(store, "a" * 32, new_generation="3" * 32)
    store.store_metadata({"coordinator:1": "one"})
    ended = client.hget("{wc}:txbatch:control", "ended")
    admin_of(store).drop()
    acquire(store, "b" * 32, new_generation="4" * 32)
    client.hincrby("{wc}:txbatch:control", "begun", 1)
    client.hset("{wc}:txbatch:control", "ended", ended)
    with pytest.raises(StateRefusedError, match=r"TORN.* part of a write"):
        acquire(store, "c" * 32)


def test_half_a_write_is_not_in_the_next_life_of_a_topology_that_was_dropped(server):
    """The keys that only the lost write had made are not there when the drop looks for keys."""
    described = {"topology": '{"states": {"counts": {}}}'}
    server.start()
    first = owner_on(server.url, "t", "a" * 32, **described)
    first.store_metadata({"coordinator:1": "one"})
    lost = commit_of(counts(x=1, y=1), attempt(1))
    killed_within(server, lambda: first.commit(lost), lambda data, before: data.index(b"}:counts", before) + 60)
    first.close()
    dropping = RedisStore(server.url, "t")
    admin_of(dropping).drop()
    dropping.close()
    second = owner_on(server.url, "t", "b" * 32, **described)
    second.commit(commit_of(counts(z=1), attempt(1)))
    server.kill()
    server.start()
    assert stored(server) == {b"z": b"1"}
    second.confirm()
    second.close()


def test_half_of_what_an_import_has_staged_is_not_put_in_twice(server):
    """The import repeats the call that a power failure has torn, and succeeds; the server is started once more."""
    server.start()
    store = RedisStore(server.url, "t")
    store.check_server()
    target = admin_of(store).importer()
    assert isinstance(target, RedisImport)
    target.begin()
    target.stage(items("a", "b"))
    killed_within(
        server, lambda: target.stage(items("c", "d")), lambda data, before: data.index(b"\r\nd\r\n", before) + 8
    )
    target._calls -= 1
    target.stage(items("c", "d"))
    target.restore(EXPORTED, generation="d" * 32, replaces=False)
    store.close()
    for _ in range(2):
        with server.client() as client:
            assert client.lrange("{t}:lines", 0, -1) == [b"a", b"b", b"c", b"d"]
        server.kill()
        server.start()


def items(*found: str) -> StoredPiece:
    return StoredPiece("lines", StateKind.LIST, [(b"", item.encode()) for item in found])


def test_no_reader_takes_state_with_half_a_write_in_it_for_committed(torn, client):
    reader = RedisReader("redis://given", "wc", nonce="a" * 32, connection=torn._connection)
    with pytest.raises(StateRefusedError, match="has applied part of a write, as after"):
        reader.read("counts", StateKind.HASH, ["x"], 1)
    with pytest.raises(StateRefusedError, match=r"'wc' is torn: restore its data from a copy"):
        snapshot(client, "wc", [HashState("counts", value=int)])
