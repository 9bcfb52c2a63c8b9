"""``txbatch status`` and ``txbatch drop`` on a real server."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import redis

from coordinator.operating.cli.exits import exit_code_of
from state.errors import FencedError
from state.records.durability import Durability, DurabilityLevel
from state.redis_owner.store import RedisStore
from state.redis_server.embedded import EmbeddedServer
from tests.conftest import Backend
from tests.support.cli.in_process import txbatch
from tests.support.stores.builders import acquire, attempt, commit_of, counts

pytestmark = pytest.mark.redis
NONCE = "ab" * 16


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def start(url: str, topology_id: str = "words") -> None:
    store = RedisStore(url, topology_id)
    store.check_server()
    store.acquire(nonce=NONCE, new_generation="cd" * 16, topology="graph", source_fingerprint="files")
    store.store_metadata({"coordinator:1": [1, 2]})
    store.close()


@pytest.fixture
def url(redis_backend: Backend) -> str:
    assert redis_backend.url is not None
    start(redis_backend.url)
    return redis_backend.url


def test_status_says_what_is_confirmed_and_what_can_be_lost(url: str, output) -> None:
    store = RedisStore(url, "words")
    store.check_server()
    acquire(store, "e" * 32, topology="graph", source_fingerprint="files")
    for txid in (1, 2):
        store.commit(commit_of(counts(a=1), attempt(txid)))
        store._asked = Durability(DurabilityLevel.FSYNC)
        store.note_durable(1)
    store.close()
    lines = output(f"status words --redis {url}").splitlines()
    assert lines[0] == f"words on {url}"
    assert {"  committed         up to txid 2", "  source            files"} <= set(lines)
    assert "  confirmed         up to txid 1 at durability fsync" in lines
    assert "  can be lost       a power cut may take from this server everything (appendonly no, no snapshots)" in lines
    (receipt,) = (line for line in lines if line.startswith("  last receipt"))
    assert receipt.endswith("durability memory")  # of txid 2, which nothing has confirmed yet


def test_status_as_json_has_the_fence(url: str, output) -> None:
    assert NONCE in json.loads(output(f"status words --redis {url} --json"))["fence"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("status others", "topology 'others' is not stored on URL"),
        ("drop others --yes", "topology 'others' is not stored on URL"),
        ("status a:b", "topology id 'a:b' is not a valid name"),
    ],
)
def test_an_unknown_topology(url: str, redis_backend: Backend, complaint, command: str, sentence: str) -> None:
    redis_backend.client().set("{others}:labels", "x")
    assert sentence.replace("URL", url) in complaint(f"{command} --redis {url}")
    assert redis_backend.client().exists("{others}:labels"), "what may be left of it"


@pytest.mark.parametrize("also", [(), ("--also", "counts")])
@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_drop_tells_how_many_keys_went_and_which_it_has_left(url, redis_backend, output, *, also, as_json) -> None:
    client = redis_backend.client()
    client.hset("{words}:counts", "a", "1")
    client.hset("{other}:counts", "a", "1")
    shown = output(f"drop words --redis {url} --yes", *also, *as_json)
    if as_json:
        left = [] if also else ["{words}:counts"]
        assert json.loads(shown) == {"topology": "words", "deleted_keys": 2 + bool(also), "left_keys": left}
    else:
        left_text = "" if also else "; 1 key left that the topology has not declared: '{words}:counts'"
        assert shown == f"topology 'words' was dropped: {2 + bool(also)} keys deleted on {url}{left_text}\n"
    assert client.exists("{other}:counts") == 1
    assert client.exists("{words}:counts") == (not also)


def test_drop_says_that_the_topology_was_running(url: str, redis_backend: Backend, capsys, monkeypatch) -> None:
    run = RedisStore(url, "words")
    run.acquire(nonce="ef" * 16, new_generation="cd" * 16, topology="graph", source_fingerprint="files")
    other = RedisStore(url, "words2")
    other.acquire(nonce="ef" * 16, new_generation="ce" * 16, topology="graph", source_fingerprint="files")
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    try:
        assert txbatch("drop", "words", "--redis", url) == 0
        shown = capsys.readouterr()
        assert "(committed up to txid 0; it is running)" in shown.err
        assert shown.out.endswith(f"on {url}; it was running: that run stops at its next write, with exit code 3\n")
        with pytest.raises(FencedError, match="topology 'words' was dropped during this run") as fenced:
            run.confirm()
        assert exit_code_of(fenced.value) == 3
        other.confirm()
    finally:
        run.close()
        other.close()


@pytest.mark.parametrize(
    "damage",
    [
        ("HSET", "{words}:txbatch:control", "committed", "x"),
        ("HSET", "{words}:txbatch:control", "revision", "x"),
        ("HSET", "{words}:txbatch:metadata", "coordinator:1", "\\xc1"),
        ("HSET", "{words}:txbatch:receipts", "0", "not a receipt"),
        ("SET", "{words}:txbatch:metadata", "text"),
        ("SET", "{words}:txbatch:receipts", "text"),
        ("SET", "{words}:txbatch:control", "text"),
    ],
)
def test_what_is_damaged_can_be_dropped_as_its_message_says(url, redis_backend, complaint, damage) -> None:
    client = redis_backend.client()
    client.execute_command(*damage)
    if damage[2] != "coordinator:1":
        assert f"`txbatch drop words --redis {url}`" in complaint(f"status words --redis {url}", code=4)
    assert txbatch("drop", "words", "--redis", url, "--yes") == 0
    assert client.keys() == []


@pytest.mark.parametrize(
    ("stdin", "code", "kept"),
    [
        (Terminal("y\n"), 0, 0),
        (Terminal("\n"), 2, 2),
        (Terminal("no\n"), 2, 2),
        (Terminal(""), 2, 2),
        (io.StringIO("y\n"), 2, 2),
    ],
    ids=["yes", "empty line", "no", "end of input", "no terminal"],
)
def test_drop_asks_on_a_terminal_and_nobody_without_one(
    url: str,
    redis_backend: Backend,
    complaint,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stdin: io.StringIO,
    code: int,
    kept: int,
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert (
        "Standard input is not a terminal to ask on; give --yes" in complaint(f"drop words --redis {url}", code=code)
    ) is not stdin.isatty()
    assert redis_backend.client().dbsize() == kept


def test_a_private_server_is_started_where_it_was_before(tmp_path: Path, output) -> None:
    with EmbeddedServer(tmp_path / "data") as server:
        start(server.url)
    assert txbatch("status", "words", "--data-dir", str(tmp_path / "data")) == 0
    assert txbatch("drop", "words", "--data-dir", str(tmp_path / "data"), "--yes") == 0
    assert f"words on the private server in '{tmp_path / 'data'}'" in output(
        "status words --data-dir", str(tmp_path / "data"), code=2
    )


def test_a_suggested_drop_names_the_directory_that_was_given(tmp_path: Path, complaint) -> None:
    folder = str(tmp_path / "data")
    with EmbeddedServer(folder) as server:
        start(server.url)
        with redis.Redis.from_url(server.url) as client:
            client.hset("{words}:txbatch:control", "committed", "x")
    assert f"`txbatch drop words --data-dir {folder}`" in complaint(f"status words --data-dir {folder}", code=4)
