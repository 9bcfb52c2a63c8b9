"""The server of the simulation answers as fakeredis does, which is compared with real servers, and holds the same."""

from __future__ import annotations

import fakeredis
import pytest
import redis

from state.redis_client.function_library import LIBRARY_NAME, library_code
from state.redis_owner.store import RedisStore
from tests.simulation.memory_redis import MemoryRedis, dump_of
from tests.support.stores.builders import dump
from tests.support.stores.random_calls import Story, sent

STORIES = 150


def test_random_calls_of_every_function_are_answered_as_by_fakeredis():
    ours = MemoryRedis()
    with fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,))) as reference:
        for client in (ours, reference):
            RedisStore("redis://in-memory", "t", client=client).check_server()
        for seed in range(STORIES):
            calls = Story(seed, reference).play()
            reference.flushall()
            ours.become({})
            assert sent(ours, calls) == sent(reference, calls), f"seed {seed}"
            assert dump_of(ours) == dump(reference), f"seed {seed}"
            reference.flushall()


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
        server.execute_command("FCALL", f"{LIBRARY_NAME}_acquire", "3", "c", "m", "r", "", "n", "g", "t", "s", "", "")
    assert server.content() == {}


def test_a_function_that_is_not_there_is_an_error():
    with pytest.raises(redis.ResponseError, match="Function not found"):
        MemoryRedis().execute_command("FCALL", f"{LIBRARY_NAME}_commit", "0")
