"""A random story of commits: the same one for the same seed, on any server."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from random import Random

import redis

from state.commits.commit import Commit
from state.commits.write_set import WriteSet
from state.redis_owner.store import RedisStore
from tests.support.stores.builders import acquire, attempt, dump, unanswered
from tests.support.stores.random_writes import random_write_set

COMMITS = 8
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
