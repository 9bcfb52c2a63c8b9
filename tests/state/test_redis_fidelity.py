"""Random commits: fakeredis, Redis and Valkey give equal replies and end in equal state."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random

import fakeredis
import pytest
import redis

from state.commit import Commit
from state.redis_store import RedisStore
from state.write_set import MAX_INTEGER, VALUE_FIELD, StateKind, ValueType, WriteSet
from tests.support.stores.builders import acquire, attempt, dump, unanswered, writes

pytestmark = pytest.mark.redis
SEQUENCES, COMMITS = 300, 8
INTEGERS = [0, 1, -1, 127, 128, -129, 10**8, 10**15, MAX_INTEGER, -MAX_INTEGER]
FLOATS = [0.0, -0.0, 0.1, 0.2, -0.3, 1e-320, 1e16, 1e22, 123456.789, 1.7e308]
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


def random_write_set(random: Random) -> WriteSet:
    def some(values):
        return {field: random.choice(values) for field in random.sample("abcd", random.randint(0, 3))}

    def split(kind, value_type, puts, increments):
        """Puts, increments and deletes of disjoint fields."""
        rest = {field: delta for field, delta in increments.items() if field not in puts}
        deletes = {field: True for field in random.sample("abcd", 2) if field not in puts and field not in rest}
        return writes(kind, value_type, puts=puts, increments=rest, deletes=deletes)

    deltas = [[random.choice(FLOATS) for _ in range(random.randint(1, 3))] for _ in range(4)]
    states = {
        "h_int": split(StateKind.HASH, ValueType.INT, some(INTEGERS), some(INTEGERS)),
        "h_float": split(StateKind.HASH, ValueType.FLOAT, some(FLOATS), some(deltas)),
        "h_str": split(StateKind.HASH, ValueType.STR, some(["", "ä", "x y"]), {}),
        "s": split(StateKind.SET, ValueType.STR, some([True]), {}),
        "z": split(StateKind.SORTED_SET, ValueType.FLOAT, some(FLOATS), some(deltas)),
        "v": writes(StateKind.VALUE, ValueType.INT, increments={VALUE_FIELD: random.choice(INTEGERS)}),
        "w": writes(StateKind.VALUE, ValueType.FLOAT, increments={VALUE_FIELD: random.choice(deltas)}),
        "l": writes(
            StateKind.LIST,
            ValueType.INT,
            deletes={VALUE_FIELD: True} if random.random() < 0.3 else {},
            appends=random.choices(INTEGERS, k=random.randint(0, 3)),
        ),
    }
    return WriteSet({name: states[name] for name in random.sample(sorted(states), random.randint(0, 4))})


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
