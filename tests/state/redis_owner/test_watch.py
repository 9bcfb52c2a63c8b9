"""A server is looked at again while a run lasts: seldom, once a time, and never so that it ends a run by silence."""

from __future__ import annotations

from typing import Any

import pytest
from redis import exceptions

from state.errors import StateRefusedError
from state.redis_client.connection import RedisConnection
from state.redis_owner.fitness import ServerWatch
from tests.support.stores.scripted_client import Scripted, Time

SOUND: dict[str, Any] = {
    "redis_version": "7.0.15",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "evicted_keys": "3",
}


def watch_over(*answers, expires=True):
    client, time = Scripted(*answers), Time()
    connection = RedisConnection(client, "redis://here", timeout_s=60.0, clock=time.clock, sleep=time.sleep)
    return ServerWatch(connection, expires=expires, evicted_before=3, clock=time.clock), client, time


def test_a_sound_server_is_asked_once_in_ten_seconds():
    watch, client, time = watch_over(SOUND)
    for _ in range(100):
        watch.look()
        time.now += 0.5
    assert client.commands == [("INFO",)] * 4


def looks(watch, time):
    """One look that finds nothing; the next is due."""
    time.now = 10.0
    watch.look()
    time.now = 20.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, "maxmemory-policy 'allkeys-lru', .* changed during the run"),
        ({"maxmemory_policy": "volatile-ttl"}, "maxmemory-policy 'volatile-ttl', .* changed during the run"),
        ({"evicted_keys": "10"}, "has evicted 7 keys during this run, perhaps of its state"),
        ({"role": "slave"}, "is a slave; give the primary's address; this changed during"),
    ],
)
def test_a_server_that_is_no_longer_fit_stops_the_run(change, said):
    watch, _, time = watch_over(SOUND | change)
    time.now = 10.0
    with pytest.raises(StateRefusedError, match=said):
        watch.look()


def test_keys_that_expire_may_be_evicted_where_none_of_the_topology_does():
    volatile = {**SOUND, "maxmemory_policy": "volatile-lru", "evicted_keys": "10"}
    watch, _, time = watch_over(volatile, {**volatile, "evicted_keys": "20"}, expires=False)
    for time.now in (10.0, 20.0):
        watch.look()
    watch, _, time = watch_over(SOUND, {**volatile, "maxmemory_policy": "allkeys-lru"}, expires=False)
    looks(watch, time)
    with pytest.raises(StateRefusedError, match="has evicted 7 keys"):
        watch.look()


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        pytest.param({}, {"role": "slave"}, "is a slave", id="what it no longer says stops nothing"),
        pytest.param(
            SOUND | {"evicted_keys": "0"}, SOUND | {"evicted_keys": "2"}, "has evicted 2 keys", id="started again"
        ),
    ],
)
def test_only_the_second_look_stops_the_run(first, then, said):
    watch, _, time = watch_over(first, then)
    looks(watch, time)
    with pytest.raises(StateRefusedError, match=said):
        watch.look()


def test_a_server_that_does_not_answer_is_left_to_the_next_commit():
    watch, client, time = watch_over(exceptions.ConnectionError("Connection refused"))
    time.now = 10.0
    watch.look()
    assert (len(client.commands), time.slept, watch.away_count) == (1, [], 0)


def test_one_that_cannot_be_asked_is_not_asked_again():
    watch, client, time = watch_over(exceptions.ResponseError("unknown command 'INFO'"))
    for time.now in (10.0, 20.0, 30.0):
        watch.look()
    assert len(client.commands) == 1
