"""Random commits, and random calls of all functions: fakeredis, Redis and Valkey give equal replies and equal state."""

from __future__ import annotations

import itertools

import fakeredis
import pytest
import redis

from state.redis_client.function_library import LIBRARY_NAME
from state.redis_owner.store import RedisStore
from tests.support.stores.builders import dump
from tests.support.stores.random_calls import Story, sent
from tests.support.stores.random_commits import play

pytestmark = pytest.mark.redis
SERVERS = ["valkey", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("redis", "redis8"))]
SEQUENCES = 300
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
    }.items()
    for answer in answers.split()
}
"""What the random calls have to meet at least."""


@pytest.fixture
def reference():
    with fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,))) as client:
        yield client


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.nightly
def test_random_commits_agree_with_fakeredis(name, server_url, reference):
    url = server_url(name)
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


@pytest.mark.parametrize("name", SERVERS)
def test_random_calls_of_every_function_agree_with_fakeredis(name, server_url, reference):
    url = server_url(name)
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
