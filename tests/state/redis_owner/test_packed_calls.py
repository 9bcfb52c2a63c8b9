"""Large calls are packed: none has more arguments than every service takes, and each does what it would do unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fakeredis
import msgpack
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from state.commits.commit import Commit, CommitStatus
from state.commits.dead_letters import DEAD_LETTERS_STATE
from state.commits.write_set import DeadLetterWrites, WriteSet
from state.keys import Keys
from state.redis_client import packed_call as packing
from state.redis_client.connection import RedisConnection
from state.redis_owner.reader import RedisReader
from state.values.state_kind import VALUE_FIELD, StateKind, ValueType
from tests.conftest import redis_program, running_server, valkey_program
from tests.simulation.memory_redis import MemoryRedis
from tests.support.stores.builders import NONCE, attempt, commit_of, dump, owner_on, unchanged, writes
from tests.support.stores.random_commits import play

TINY = {"FLAT_MAX": 12, "ARGUMENTS_LIMIT": 14}
FLAT = {"FLAT_MAX": 10**9}
PIECES = {"FLAT_MAX": 12, "PIECE_MAX": 7}
SEEDS = 120


class Counting:
    """A client that counts the arguments of each function call."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.lengths: list[int] = []
        self.longest = 0

    def execute_command(self, *arguments: Any) -> Any:
        if arguments[0] in ("FCALL", "FCALL_RO"):
            self.lengths.append(len(arguments))
            self.longest = max(self.longest, *map(len, arguments))
        return self._client.execute_command(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


@contextmanager
def limits(monkeypatch: pytest.MonkeyPatch, given: dict[str, int]) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for name, value in given.items():
            patched.setattr(packing, name, value)
        yield


def large(txids: int) -> list[Commit]:
    """Two commits with more than 4,000 of everything that a commit may have."""
    many = range(4_500)
    attempts = [tuple(attempt(first + place) for place in range(txids)) for first in (1, txids + 1)]
    states: dict[str, Any] = {
        "names": writes(StateKind.HASH, ValueType.STR, puts={f"{n}": f"{'ä' * (n % 200)}{n}" for n in many}),
        "sums": writes(StateKind.HASH, ValueType.FLOAT, increments={f"{n}": [0.5, n / 7] for n in many}),
        "seen": writes(StateKind.SET, ValueType.STR, puts={f"member {n}": True for n in many}),
        "best": writes(StateKind.SORTED_SET, ValueType.FLOAT, puts={f"{n}": n / 3 for n in many}),
        "log": writes(StateKind.LIST, ValueType.BYTES, appends=[b"\xff%d" % n for n in many]),
        "text": writes(StateKind.VALUE, ValueType.STR, puts={VALUE_FIELD: "x" * 70_000}),
        **{f"of:{n}": writes(StateKind.HASH, ValueType.INT, increments={"a": n}) for n in many},
    }
    letters = [b"%d.%06d:letter" % (1, n) for n in many]
    first = WriteSet(states, DeadLetterWrites(dict.fromkeys(letters, 1.0), (), 10_000))
    metadata = {f"p:{n}": [n] for n in many}
    second = WriteSet(
        {
            "names": writes(StateKind.HASH, ValueType.STR, deletes={f"{n}": True for n in many[1:]}),
            "seen": writes(StateKind.SET, ValueType.STR, deletes={f"member {n}": True for n in many[1:]}),
        },
        DeadLetterWrites({}, letters[1:], 10_000),
    )
    return [Commit(attempts[0], first, metadata), Commit(attempts[1], second, {}, tuple(metadata)[1:])]


@pytest.mark.nightly
@pytest.mark.redis
@pytest.mark.parametrize("backend", ["valkey", "redis"], indirect=True)
def test_a_commit_of_thousands_is_sent_within_the_limit_and_stores_what_it_would_unpacked(backend, monkeypatch):
    found, client = [], Counting(backend.client())
    for given_limits in ({}, FLAT):
        client.lengths.clear()
        with limits(monkeypatch, given_limits):
            store = owner_on(client, "t")
            assert [store.commit(each).status for each in large(1_500)] == [CommitStatus.OK] * 2
        found.append(dump(client))
        if not given_limits:
            assert max(client.lengths) <= 3_999
            reader = RedisReader("", "t", nonce=NONCE, connection=RedisConnection(client, "s", timeout_s=1))
            names = [f"{n}" for n in range(4_500)]
            assert sum(value is not None for value in reader.read("best", StateKind.SORTED_SET, names, 3_000)) == 4_500
            assert max(client.lengths) <= 3_999
        client.flushall()
    packed, flat = found
    assert len(packed) > 4_500
    assert packed == flat
    assert len(packed[Keys("t").state(DEAD_LETTERS_STATE).encode()][1]) == 1


def test_random_commits_do_the_same_packed_as_flat(monkeypatch):
    servers = [fakeredis.FakeServer(version=(7,)) for _ in range(2)]
    clients: list[Any] = [Counting(fakeredis.FakeRedis(server=server)) for server in servers]
    was_packed = 0
    for seed in range(SEEDS):
        found = []
        for client, given_limits in zip(clients, (TINY, FLAT), strict=True):
            client.lengths.clear()
            with limits(monkeypatch, given_limits):
                found.append(play(seed, client))
        assert found[0] == found[1], f"seed {seed}"
        assert max(clients[0].lengths) <= TINY["ARGUMENTS_LIMIT"]
        was_packed += max(clients[0].lengths) < max(clients[1].lengths)
    assert was_packed > SEEDS / 2


LENGTHS = (0, 1, 31, 32, 127, 128, 255, 256, 65_535, 65_536)


@given(
    st.lists(st.text(max_size=40) | st.binary(max_size=40) | st.sampled_from(LENGTHS).map(bytes), min_size=4)
    | st.just([b"x"] * 40_000)
)
def test_strings_arrive_as_they_were_sent(strings):
    for given_limits in (TINY, PIECES):
        server = MemoryRedis()
        with pytest.MonkeyPatch.context() as monkeypatch, limits(monkeypatch, given_limits):
            check_arrival(server, server.hash, strings)


@pytest.mark.parametrize("key_count", [0, 1, 3_000, 3_990, 9_000])
def test_a_call_of_many_keys_and_much_content_keeps_both_limits_and_declares_what_it_can(key_count):
    keys, contents = [f"{{t}}:{n}" for n in range(key_count)], [b"x" * 300_000] * 90
    declared, *sent = packing.packed_call([str(key_count), *keys, *contents])
    count, mark = int(declared), sent.index("packed")
    pieces: list[Any] = sent[mark + 2 :]
    assert count == min(key_count, 3_999 - 5 - len(pieces))
    assert 2 + 1 + len(sent) <= 3_999
    assert max(map(len, pieces)) <= packing.PIECE_MAX
    assert (mark, int(sent[mark + 1])) == (count, key_count - count)
    strings = msgpack.unpackb(b"".join(pieces), raw=True)
    assert [*sent[:count], *(each.decode() for each in strings)] == [*keys, *(each.decode() for each in contents)]


@pytest.mark.redis
@pytest.mark.parametrize("limit", ["proto-max-bulk-len", "client-query-buffer-limit"])
@pytest.mark.parametrize("program", [redis_program, valkey_program])
def test_a_server_of_the_smallest_limits_takes_values_and_commits_of_any_length(program, limit):
    with running_server(program(), f"--{limit}", "1mb") as url, redis.Redis.from_url(url) as client:
        counting: Any = Counting(client)
        check_arrival(counting, client.hgetall, [b"x" * 400] * 5_000 + ["ä" * 3_000_000, b"\xff" * (1 << 20)])
        assert counting.longest <= packing.PIECE_MAX


@pytest.mark.redis
@pytest.mark.parametrize("backend", ["valkey", "redis"], indirect=True)
def test_strings_of_every_length_arrive_on_a_server(backend, monkeypatch):
    client = backend.client()
    strings = [b"\xff" * length for length in LENGTHS] + ["ä" * length for length in LENGTHS]
    with limits(monkeypatch, TINY):
        check_arrival(client, client.hgetall, strings)


def check_arrival(client, content_of, strings):
    store = owner_on(client, "t")
    values = writes(StateKind.HASH, ValueType.BYTES, puts=dict(enumerate(strings)))
    assert store.commit(commit_of(WriteSet({"log": values}))).status is CommitStatus.OK
    sent = [each.encode() if isinstance(each, str) else each for each in strings]
    assert content_of("{t}:log") == {b"%d" % place: each for place, each in enumerate(sent)}


@pytest.mark.redis
def test_a_packed_call_that_is_damaged_changes_nothing(redis_backend):
    client = redis_backend.client()
    owner_on(client, "t")
    for packed in (b"", b"\x92\xa1a", b"\x91\xa2a", b"x"):
        with unchanged(client), pytest.raises(redis.ResponseError):
            client.execute_command("FCALL", "txbatch_8_commit", "1", "{t}:txbatch:control", "packed", "0", packed)
