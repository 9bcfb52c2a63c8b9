"""A server that loses what it is told to, and holds what a prefix of its calls has left."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from state.redis_owner.store import RedisStore
from state.redis_server.lossy_server import LossyServer


class Struck:
    """Faults that strike when a test says so, once each."""

    def __init__(self) -> None:
        self.next: set[str] = set()

    def strikes(self, fault: str) -> bool:
        if fault in self.next:
            self.next.remove(fault)
            return True
        return False

    def drawn(self, fault: str) -> Random:
        return Random(0)  # the first choice of a fault that draws one


def world() -> tuple[LossyServer, Struck, RedisStore, list[str]]:
    faults, told = Struck(), list[str]()
    server = LossyServer(faults, told.append)
    caller: Any = SimpleNamespace(name="driver", wait=lambda seconds: None)
    store = RedisStore("redis://sim", "t", client=server.client(caller), clock=lambda: 0.0, sleep=lambda seconds: None)
    store.check_server()
    store.acquire(nonce="0" * 32, new_generation="1" * 32, topology="{}", source_fingerprint="input")
    return server, faults, store, told


def metadata(server: LossyServer, store: RedisStore) -> set[bytes]:
    return set(server.inner.hkeys(store.keys.metadata))


def test_a_request_that_is_lost_was_not_executed_and_is_sent_again() -> None:
    server, faults, store, _ = world()
    before = server.calls
    faults.next.add("server.loses_request")
    store.store_metadata({"tx:1": 1})
    assert server.calls == before + 2
    assert metadata(server, store) == {b"tx:1"}


def test_a_call_whose_answer_is_lost_is_executed_once() -> None:
    server, faults, store, told = world()
    faults.next.add("server.loses_answer")
    store.store_metadata({"tx:1": 1})
    assert metadata(server, store) == {b"tx:1"}
    assert told == ["driver does not get an answer of the server"]


def test_a_server_that_has_lost_its_last_write_holds_what_was_there_before() -> None:
    server, faults, store, told = world()
    store.store_metadata({"tx:1": 1})
    store.store_metadata({"tx:2": 2})
    faults.next.add("server.goes_back")
    before = server.inner
    with pytest.raises(redis.ResponseError, match="unknown command"):
        server.call(SimpleNamespace(name="driver", wait=lambda seconds: None), ("NONSENSE",))
    assert server.inner is not before
    assert metadata(server, store) < {b"tx:1", b"tx:2"}
    assert told[0].startswith("the server loses its last")
