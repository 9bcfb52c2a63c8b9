"""A process outlives runs, and what it keeps of one serves another only if all it was made of is the same.

A session of the user's own, and the workers below it, run one topology after the other, or two versions of one: with
the same txids, waves, topics, folders and paths, and with other code, secrets and servers.
"""

from __future__ import annotations

import gzip
import os
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.engines.connect.arrow_stages import PackedPlan
from coordinator.sources.files.stores import compressed_file
from coordinator.sources.files.stores.compressed_file import close_kept, open_content
from coordinator.sources.files.stores.local_store import LocalStore
from coordinator.sources.kafka import worker_readers
from coordinator.sources.kafka.client_settings import ClientSettings, FromEnvironment, FromFile
from coordinator.sources.kafka.worker_readers import ReaderPool
from coordinator.sources.redis_streams.stream_reader import _process_client
from state.redis_owner.reader import _process_connection

PACKAGES = ("state", "coordinated_bolt", "committers", "coordinator")
KEEPS = re.compile(r"@cache\b|lru_cache\(|^_\w+(: .*)? = (\{\}|\w*Dict\w*\(\))", re.MULTILINE)
KEPT = {
    "coordinated_bolt/streams/records.py": "what makes rows of the objects of a class, by the class",
    "coordinated_bolt/transport/blocks.py": "blocks, by their bytes",
    "coordinator/engines/connect/arrow_stages.py": "plans, by their bytes and run",
    "coordinator/engines/spark/privacy.py": "a folder of the driver, which holds nothing of a run",
    "coordinator/engines/spark/worker_settling.py": "the connections a worker began with",
    "coordinator/operating/inspection/explanations.py": "a page of ours",
    "coordinator/sources/files/stores/compressed_file.py": "unpackers, by path, stamp and topology",
    "coordinator/sources/kafka/worker_readers.py": "readers, by everything a client is made with",
    "coordinated_bolt/user_code.py": "whose code a file is, by its name",
    "state/redis_client/function_library.py": "a text of ours",
    "state/redis_owner/reader.py": "connections, by address, key and process",
    "coordinator/sources/redis_streams/stream_reader.py": "connections, by address and process",
}
"""Module -> what it keeps for as long as its process lives."""


def test_every_cache_of_a_process_is_known_here():
    found = {
        str(path) for package in PACKAGES for path in Path(package).rglob("*.py") if KEEPS.search(path.read_text())
    }
    assert found == set(KEPT)


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def change(to: str) -> None:
        monkeypatch.setenv("KAFKA_PASSWORD", to)
        Path("password").write_text(to, encoding="utf-8")

    monkeypatch.chdir(tmp_path)
    change("former")
    return change


class Connection:
    """In place of a reader, or of a topic on its brokers, which gives itself for its id."""

    def __init__(self, *made_of: Any, **more: Any) -> None:
        """Takes whatever it is made of."""

    def topic_id(self) -> Connection:
        return self

    def close(self) -> None:
        """Nothing is open."""


def pool_of_connections() -> ReaderPool:
    make: Any = Connection
    return ReaderPool(make)


def settings(servers: str = "h:1", **options: Any) -> ClientSettings:
    return ClientSettings(servers, {"sasl.username": "reader", **options})


PLACES: list[dict[str, Any]] = [
    {"settings": settings(), "topic": "t", "topic_id": "1", "partition": 0, "reads_committed": True},
    {"settings": settings("h:2")},
    {"settings": settings(**{"client.id": "x"})},
    {"topic": "u"},
    {"topic_id": "2"},
    {"partition": 1},
    {"reads_committed": False},
]


def test_a_reader_serves_only_what_it_was_made_for():
    pool = pool_of_connections()
    readers = [pool.reader(**PLACES[0] | change) for change in PLACES]
    assert len({*map(id, readers)}) == len(PLACES)
    assert [pool.reader(**PLACES[0] | change) for change in PLACES] == readers


@pytest.mark.parametrize("password", [FromEnvironment("KAFKA_PASSWORD"), FromFile("password")])
def test_a_secret_that_was_changed_between_two_runs_is_used_by_the_second(password, secrets, monkeypatch):
    monkeypatch.setattr(worker_readers, "BrokerTopic", Connection)
    pool, given = pool_of_connections(), settings(**{"sasl.password": password})

    def connections() -> tuple[Any, Any]:
        return pool.reader(given, "t", "1", 0, reads_committed=True), pool.topic_id(given, "t")

    former = connections()
    assert connections() == former
    secrets("new")
    assert not {*map(id, connections())} & {*map(id, former)}


@pytest.mark.parametrize("kept", [_process_client, lambda url, pid: _process_connection(url, "k", pid)])
def test_a_connection_is_of_one_address_one_user_and_one_process(kept):
    here = os.getpid()
    places = [("redis://127.0.0.1:1", here), ("redis://:secret@127.0.0.1:1", here), ("redis://127.0.0.1:1", here + 1)]
    made = [kept(*place) for place in places]
    assert len({*map(id, made)}) == len(places)
    assert [kept(*place) for place in places] == made


def test_a_plan_is_its_bytes_in_one_run():
    made = [({"weight": 1}, "r"), ({"weight": 1}, "r"), ({"weight": 2}, "r"), ({"weight": 1}, "other run")]
    former, same, *others = (PackedPlan(pickle.dumps(plan), nonce) for plan, nonce in made)
    assert former.value is same.value
    assert all(other.value is not former.value for other in others)


@pytest.fixture
def unpacked() -> Iterator[None]:
    close_kept()
    yield
    close_kept()


def test_an_unpacker_serves_one_topology_and_the_file_it_has_opened(tmp_path, unpacked, monkeypatch):
    monkeypatch.setattr("coordinator.sources.files.stores.input_file.RECENT_NS", 0)
    path, store = tmp_path / "a.gz", LocalStore(str(tmp_path))

    def read(topology_id: str) -> tuple[Any, bytes]:
        file = open_content(store.of(topology_id), str(path))
        content = file.read_up_to(0, 100)
        file.close()
        return file, content

    path.write_bytes(gzip.compress(b"former"))
    former, _ = read("t")
    assert read("t") == (former, b"former")
    assert read("u")[0] is not former
    new = tmp_path / "new"
    new.write_bytes(gzip.compress(b"newest", mtime=1))
    os.utime(new, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    assert new.stat().st_size == path.stat().st_size, "as long, and as old"
    new.rename(path)
    assert read("t")[1] == b"newest"
    assert len(compressed_file._KEPT) == 3
