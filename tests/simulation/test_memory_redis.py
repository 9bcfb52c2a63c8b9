"""The server of the simulation answers as others do, and holds the same afterwards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import redis

from state.commit import CommitStatus
from state.redis_connection import library_code
from tests.conftest import Backend
from tests.simulation.memory_redis import MemoryRedis, SortedSet
from tests.support.stores.builders import dump
from tests.support.stores.random_calls import answers_of

KINDS: dict[type, bytes] = {dict: b"hash", bytes: b"string", set: b"set", SortedSet: b"zset", list: b"list"}
SEEDS, STEPS = range(8), 250


def dump_of(server: MemoryRedis) -> dict[bytes, Any]:
    def ordered(value: Any) -> Any:
        return sorted(value.items(), key=lambda item: (item[1], item[0])) if type(value) is SortedSet else value

    return {key: (KINDS[type(value)], ordered(value)) for key, value in server.content().items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_function_calls_are_answered_as_by_other_servers(seed, backend: Backend):
    ours, client = MemoryRedis(), backend.client()
    answers = answers_of(ours, seed, STEPS)
    assert answers == answers_of(client, seed, STEPS)
    assert dump_of(ours) == dump(client)


def test_the_random_calls_are_answered_in_every_way():
    statuses: Counter[str] = Counter()
    for seed in SEEDS:
        for _, reply in answers_of(MemoryRedis(), seed, STEPS):
            if isinstance(reply, list) and reply and isinstance(reply[0], bytes):
                statuses[reply[0].decode()] += 1
    statuses_known = {*CommitStatus, "RACED", "SOURCE_CHANGED", "TOPOLOGY_CHANGED", "GONE"}
    assert statuses_known <= statuses.keys()


def test_what_was_handed_out_does_not_change_any_more():
    server = MemoryRedis()
    server.execute_command("HSET", "h", "a", "1")
    before = server.content()
    server.execute_command("HSET", "h", "a", "2", "b", "3")
    server.execute_command("RPUSH", "l", "x")
    assert before == {b"h": {b"a": b"1"}}
    server.become(before)
    server.execute_command("HDEL", "h", "a")
    assert before == {b"h": {b"a": b"1"}}
    assert server.content() == {}


def test_a_command_that_is_denied_changes_nothing():
    server = MemoryRedis()
    server.execute_command("FUNCTION", "LOAD", library_code())
    server.denied.add("HSET")
    with pytest.raises(redis.exceptions.NoPermissionError, match="may not run HSET"):
        server.execute_command("FCALL", "txbatch_2_acquire", "3", "c", "m", "r", "", "n", "g", "t", "s", "", "")
    assert server.content() == {}


def test_a_function_that_is_not_there_is_an_error():
    with pytest.raises(redis.ResponseError, match="Function not found"):
        MemoryRedis().execute_command("FCALL", "txbatch_2_commit", "0")
