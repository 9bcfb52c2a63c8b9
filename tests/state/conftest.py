"""A store over every backend, already checked and acquired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from state.redis_owner.store import RedisStore
from tests.support.stores.builders import NONCE, acquire

OpenStore = Callable[..., RedisStore]


@pytest.fixture
def open_store(backend: Any) -> Iterator[OpenStore]:
    """Makes stores on the backend under test; they are closed with the test."""
    opened: list[RedisStore] = []

    def open_one(topology_id: str = "wc", **options: Any) -> RedisStore:
        store = RedisStore("redis://under-test", topology_id, client=backend.client(), **options)
        opened.append(store)
        store.check_server()
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def started(open_store: OpenStore) -> OpenStore:
    """Makes stores that own topology "wc", the last one of them."""

    def start(nonce: str = NONCE, **changes: Any) -> RedisStore:
        store = open_store()
        acquire(store, nonce, **changes)
        return store

    return start


@pytest.fixture
def store(started: OpenStore) -> RedisStore:
    """A store that owns topology "wc"."""
    return started()


@pytest.fixture
def client(backend: Any) -> Any:
    """A plain client of the backend under test."""
    return backend.client()
