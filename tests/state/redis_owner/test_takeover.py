"""What becomes of a request to take over that is executed again, at a server that loses its writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis

from state.commits.commit import CommitStatus
from state.errors import FencedError, StateRefusedError
from state.redis_owner.reader import RedisReader
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind
from tests.simulation.memory_redis import MemoryRedis
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import acquire, attempt, commit_of, counts

CONTROL = "{wc}:txbatch:control"
TOKEN = 8
"""Its place among the arguments of a request to take over."""
ONE, TWO, THREE, FOUR = (digit * 32 for digit in "1234")


class World:
    """A server, and the requests to take over that it was sent.

    Attributes:
        server: what holds the topology.
        requests: in order; each may be executed again.
        meanwhile: what happens after the next requests by which run TWO takes over, whose answers are lost.
    """

    def __init__(self) -> None:
        self.server = MemoryRedis()
        self.requests: list[tuple[Any, ...]] = []
        self.meanwhile: list[Callable[[], object]] = []

    def execute_command(self, *arguments: Any) -> Any:
        """What a client calls."""
        reply = self.server.execute_command(*arguments)
        if arguments[0] != "FCALL" or not arguments[1].endswith("_acquire"):
            return reply
        self.requests.append(arguments)
        if self.meanwhile and TWO in arguments[TOKEN] and reply[0] == b"OK":
            self.meanwhile.pop(0)()
            raise redis.ConnectionError("the answer is lost")
        return reply

    def close(self) -> None:
        """A client may be closed; the server stays."""

    def store(self) -> RedisStore:
        """A run's store, checked, not acquired."""
        store = RedisStore("redis://in-memory", "wc", client=self)
        store.check_server()
        return store


@pytest.fixture
def world() -> World:
    return World()


def owned(world: World, nonce: str) -> RedisStore:
    store = world.store()
    acquire(store, nonce)
    return store


def test_a_request_that_is_executed_again_after_its_loss_owns_nothing(world):
    """Else its run would commit on metadata that is not stored: its next revision is the very one that it expects."""
    one = owned(world, ONE)
    before = world.server.content()
    two = owned(world, TWO)
    two.store_metadata({"coordinator:1": "two's"})
    world.server.become(before)
    one.store_metadata({"coordinator:1": "one's"})
    world.server.execute_command(*world.requests[-1])
    reply = two.commit(commit_of(counts(a=1), attempt(1)))
    assert reply.status is CommitStatus.REGRESSED, reply
    with pytest.raises(StateRefusedError, match="earlier state"):
        two.confirm()
    three = world.store()
    assert acquire(three, THREE).metadata == {"coordinator:1": "one's"}


def test_a_request_that_is_executed_again_where_it_was_is_the_same(world):
    owned(world, ONE)
    before = world.server.content()
    two = owned(world, TWO)
    world.server.become(before)
    world.server.execute_command(*world.requests[-1])
    assert two.commit(commit_of(counts(a=1), attempt(1))).status is CommitStatus.OK


def test_one_fence_never_stands_for_two_histories(world):
    """The first request of a start is executed, unheard, and lost with what was before; a later one is executed there.

    Both make it the third owner at the fourth revision. A copy of the first history that is restored over the second
    must not be taken for it.
    """
    owned(world, ONE)
    start, copies = world.server.content(), []
    owned(world, THREE).store_metadata({"coordinator:1": "three's"})

    def server_loses_both_and_another_takes_over() -> None:
        copies.append(world.server.content())
        world.server.become(start)
        owned(world, FOUR).store_metadata({"coordinator:1": "four's"})

    world.meanwhile = [server_loses_both_and_another_takes_over]
    two = owned(world, TWO)
    world.server.become(copies[0])
    assert world.server.hash(CONTROL)[b"fence"].startswith(b"3:")
    with pytest.raises(FencedError):
        two.confirm()


def test_every_request_of_a_start_that_is_raced_has_a_token_of_its_own(world):
    owned(world, ONE)
    world.meanwhile = [lambda: owned(world, THREE), lambda: owned(world, FOUR)]
    owned(world, TWO)
    tokens = [request[TOKEN] for request in world.requests if TWO in request[TOKEN]]
    assert list(dict.fromkeys(tokens)) == [f"{TWO}-0", f"{TWO}-1", f"{TWO}-2"]


def test_readers_know_their_run_by_its_nonce_whichever_request_won(world):
    owned(world, ONE)
    world.meanwhile = [lambda: owned(world, THREE)]
    two = owned(world, TWO)
    two.commit(commit_of(counts(a=1), attempt(1)))
    reader = RedisReader("redis://in-memory", "wc", nonce=TWO, connection=two._connection)
    assert reader.read("counts", StateKind.HASH, ["a"], 1) == [b"1"]


def test_a_takeover_that_is_executed_at_two_servers_makes_two_owners(world):
    """The primary is gone before it answers; the replica that follows it lacks a write, and later it is back."""
    met = []
    one = owned(world, ONE)
    lagging = world.server.content()
    one.store_metadata({"coordinator:1": "one's"})

    def server_moves() -> None:
        met.append(world.server.content())
        world.server.become(lagging)

    world.meanwhile = [server_moves]
    two = owned(world, TWO)
    two.store_metadata({"coordinator:1": "two's"})
    two.confirm()
    world.server.become(met[0])
    with pytest.raises(StateRefusedError, match="earlier state"):
        two.confirm()


def test_every_request_of_a_drop_that_is_raced_has_a_token_of_its_own(world, monkeypatch):
    store = owned(world, ONE)
    execute, tokens = world.server.execute_command, []

    def noted(*arguments: Any) -> Any:
        if arguments[0] == "FCALL" and arguments[1].endswith("_drop_begin"):
            tokens.append(arguments[-1])
        return execute(*arguments)

    monkeypatch.setattr(world.server, "execute_command", noted)
    assert admin_of(store).drop()
    assert len(tokens) == len(set(tokens)) == 2, "the first one asks whose fence it is"
