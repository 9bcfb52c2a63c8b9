"""An import among others: late calls, lost answers, runs that start meanwhile, two at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from state.errors import StateRefusedError, TopologyError
from state.records.stored_records import StoredPiece
from state.redis_admin.importing import RedisImport
from state.redis_owner.store import RedisStore
from state.values.state_kind import StateKind
from tests.conftest import Backend
from tests.support.stores.admin import admin_of
from tests.support.stores.builders import EXPORTED, acquire, attempt, commit_of, counts, dump

pytestmark = pytest.mark.redis
GENERATION = "d" * 32
STARTED = "b" * 32
"""The nonce of a run that starts meanwhile."""


class Place:
    """A server, and what imports into it and runs on it."""

    def __init__(self, backend: Backend) -> None:
        self.client = backend.client()

    def store(self) -> RedisStore:
        made = RedisStore("redis://given", "t", client=self.client)
        made.check_server()
        return made

    def importer(self) -> RedisImport:
        made = admin_of(self.store()).importer()
        assert isinstance(made, RedisImport)
        return made

    def counts(self) -> dict[bytes, bytes]:
        return dict(self.client.hgetall("{t}:counts"))  # type: ignore[arg-type]

    def committed(self) -> bytes:
        found = self.client.hget("{t}:txbatch:control", "committed")
        assert isinstance(found, bytes)
        return found


@pytest.fixture
def place(backend: Backend) -> Place:
    return Place(backend)


def piece(**entries: int) -> StoredPiece:
    return StoredPiece("counts", StateKind.HASH, [(name.encode(), b"%d" % count) for name, count in entries.items()])


def restored(target: RedisImport, *, replaces: bool = False) -> int:
    return target.restore(EXPORTED, generation=GENERATION, replaces=replaces)


def around(target: RedisImport, name: str, act: Callable[[Callable[[], Any]], Any]) -> Any:
    """Lets `act` make the call of one function: it is given what sends it."""
    send = target._connection.function

    def function(called: str, *arguments: str, **more: Any) -> Any:
        if called != name:
            return send(called, *arguments, **more)
        return act(lambda: send(called, *arguments, **more))

    return mock.patch.object(target._connection, "function", function)


def test_a_command_of_an_earlier_import_that_arrives_late_takes_nothing_from_this_one(place):
    abandoned = place.importer()
    abandoned.begin()
    abandoned.stage(piece(a=1))
    target = place.importer()
    with mock.patch.object(target._connection, "call", wraps=target._connection.call) as call:
        target.begin()
    (late,) = [given.args for given in call.call_args_list if given.args[0] == "UNLINK"]
    target.stage(piece(a=1))
    place.client.execute_command(*late)
    target.stage(piece(b=2))
    restored(target)
    assert place.counts() == {b"a": b"1", b"b": b"2"}


def test_an_import_whose_answer_was_lost_has_succeeded_although_a_run_has_started_since(place):
    target = place.importer()
    target.begin()
    target.stage(piece(a=1))

    def lost_answer(send: Callable[[], Any]) -> Any:
        send()
        acquire(place.store(), STARTED)
        return send()

    with around(target, "restore", lost_answer):
        restored(target)
    assert place.counts() == {b"a": b"1"}
    assert place.committed() == b"7"


def test_a_topology_that_a_run_has_started_meanwhile_is_replaced_only_if_asked(place):
    target = place.importer()
    target.begin()
    target.stage(piece(a=1))

    def started_first(send: Callable[[], Any]) -> Any:
        store = place.store()
        if not place.client.exists("{t}:txbatch:control"):
            acquire(store, STARTED)
            store.commit(commit_of(counts(x=1), attempt(1)))
        return send()

    with around(target, "restore", started_first), pytest.raises(TopologyError, match="'t' exists; give --replace"):
        restored(target)
    assert place.counts() == {b"x": b"1"}
    restored(target, replaces=True)
    assert place.counts() == {b"a": b"1"}


def test_of_two_imports_at_once_the_one_that_began_last_is_put_in_and_the_other_is_told(place):
    first, second = place.importer(), place.importer()
    first.begin()
    first.stage(piece(a=1))
    second.begin()
    second.stage(piece(b=2))
    before = dump(place.client)
    with pytest.raises(StateRefusedError, match="another import has begun; nothing was changed"):
        first.stage(piece(a=2))
    with pytest.raises(StateRefusedError, match="another import has begun; nothing was changed"):
        restored(first)
    assert dump(place.client) == before
    restored(second)
    assert place.counts() == {b"b": b"2"}


def test_a_topology_that_is_dropped_while_it_is_imported_is_imported_or_refused_whole(place):
    owner = place.store()
    acquire(owner)
    owner.commit(commit_of(counts(x=1), attempt(1)))
    target = place.importer()
    target.begin()
    target.stage(piece(a=1))

    def dropped_first(send: Callable[[], Any]) -> Any:
        admin_of(place.store()).drop()
        return send()

    with (
        around(target, "restore", dropped_first),
        pytest.raises(StateRefusedError, match=r"another import has begun|has lost a part of this import"),
    ):
        restored(target, replaces=True)
    assert dump(place.client) == {}
