"""Random commits, and random calls of all functions: fakeredis, Redis and Valkey give equal replies and equal state."""

from __future__ import annotations

import itertools
from contextlib import nullcontext, suppress
from random import Random

import fakeredis
import pytest
import redis

from state.commits.commit import Commit
from state.commits.write_set import WriteSet
from state.redis_client.function_library import LIBRARY_NAME
from state.redis_topology.store import RedisStore
from tests.support.stores.builders import acquire, attempt, dump, unanswered
from tests.support.stores.random_calls import Story, sent
from tests.support.stores.random_writes import random_write_set

pytestmark = pytest.mark.redis
SEQUENCES, COMMITS = 300, 8
CALLS = 10_000
ANSWERS = {
    (function, answer)
    for function, answers in {
        "acquire": "OK RACED DROPPING REGRESSED VERSION content error",
        "commit": "OK ALREADY CONFLICT DROPPED FENCED LIMIT ORDER REGRESSED TYPE VERSION error",
        "confirm": "OK CONFLICT DROPPED FENCED REGRESSED",
        "drop_begin": "OK GONE RACED",
        "drop_end": "OK ALREADY FENCED",
        "drop_keys": "OK FENCED",
        "drop_letters": "OK ORDER REGRESSED",
        "lacking": "content",
        "last_group": "OK DROPPED FENCED REGRESSED",
        "letters": "content error",
        "look": "content",
        "metadata": "OK ALREADY CONFLICT DROPPED FENCED REGRESSED TYPE VERSION",
        "read": "content error",
        "status": "content error",
    }.items()
    for answer in answers.split()
}
"""What the random calls have to meet at least."""
PLANTED = [
    ("set", "{ID}:h_int", "x"),
    ("hset", "{ID}:h_int", "a", "1e3"),
    ("hset", "{ID}:h_float", "a", "+1.50"),
    ("zadd", "{ID}:z", "inf", "a"),
    ("hset", "{ID}:txbatch:control", "format", "1"),
    ("hset", "{ID}:txbatch:control", "fence", "99:f"),
    ("del", "{ID}:txbatch:control"),
    ("hset", "{ID}:txbatch:control", "committed", "3"),
    ("hset", "{ID}:txbatch:control", "revision", "1"),
]


def play(seed: int, client: redis.Redis) -> tuple[list[str], dict[bytes, object]]:
    """The same story for the same seed; returns every reply and the final state."""
    random, topology_id = Random(seed), f"t{seed}"
    store = RedisStore("redis://under-test", topology_id, client=client)
    if seed == 0:
        store.check_server()
    acquire(store)
    replies: list[str] = []
    commit = Commit((attempt(1),), WriteSet())
    txid = 1
    for _ in range(COMMITS):
        if random.random() < 0.08:
            command, key, *arguments = random.choice(PLANTED)
            with suppress(redis.ResponseError):  # an earlier one has given the key another type
                client.execute_command(command, key.replace("{ID}", f"{{{topology_id}}}"), *arguments)
        is_repeated = random.random() < 0.2
        if not is_repeated:
            first = max(1, txid + random.choice([0, 0, 0, 0, 0, 0, -1, 1]))
            group = tuple(attempt(first + i, random.randint(1, 2)) for i in range(random.randint(1, 3)))
            metadata = {f"p:{group[0].txid}": seed} if random.random() < 0.3 else {}
            commit = Commit(group, random_write_set(random), metadata, (f"p:{first - 1}",))
        with unanswered(store) if random.random() < 0.3 else nullcontext():
            reply = store.commit(commit)
        replies.append(f"{reply.status} {reply.detail}")
        if reply.status == "OK":
            txid = commit.attempts[-1].txid + 1
    return replies, dump(client, f"{{{topology_id}}}:*")


@pytest.fixture
def reference():
    with fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,))) as client:
        yield client


@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_random_commits_agree_with_fakeredis(name, request, reference):
    url = request.getfixturevalue("valkey_url" if name == "valkey" else "redis_server_url")
    seen: set[str] = set()
    with redis.Redis.from_url(url, protocol=2) as client:
        client.flushall()
        client.function_flush()
        for seed in range(SEQUENCES):
            expected, actual = play(seed, reference), play(seed, client)
            assert actual[0] == expected[0], f"seed {seed}"
            assert actual[1] == expected[1], f"seed {seed}"
            seen.update(reply.split(" ")[0] for reply in actual[0])
            reference.flushdb()
            client.flushdb()
    assert seen == {"OK", "ALREADY", "CONFLICT", "FENCED", "ORDER", "TYPE", "REGRESSED", "VERSION", "LIMIT"}


@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_random_calls_of_every_function_agree_with_fakeredis(name, request, reference):
    url = request.getfixturevalue("valkey_url" if name == "valkey" else "redis_server_url")
    count = 0
    seen: set[tuple[str, str]] = set()
    RedisStore("redis://in-memory", "t", client=reference).check_server()
    with redis.Redis.from_url(url, protocol=2) as client:
        client.flushall()
        RedisStore(url, "t", client=client).check_server()
        for seed in itertools.count():
            calls = Story(seed, reference).play()
            reference.flushall()
            expected, actual = sent(reference, calls), sent(client, calls)
            assert actual == expected, f"seed {seed}"
            assert dump(client) == dump(reference), f"seed {seed}"
            seen.update((call[1].removeprefix(f"{LIBRARY_NAME}_"), answer_of(reply)) for call, reply in actual)
            count += len(actual)
            reference.flushall()
            client.flushall()
            if count >= CALLS:
                break
    assert seen >= ANSWERS


def answer_of(reply) -> str:
    """What kind of reply it is: a status, an error, or content."""
    if isinstance(reply, type):
        return "error"
    first = reply[0] if isinstance(reply, list) and reply else reply
    return first.decode() if isinstance(first, bytes) and first.isalpha() and first.isupper() else "content"
