"""The error of a run that was taken over names the newer run, if that has told where it runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.run import NAME_PAUSE_S, newer_run_named
from state.errors import FencedError, StateUnreachableError
from state.records.run_pulse import NOW_FIELD, RUN_FIELD, SEEN_FIELD, RunFigures, RunIdentity, to_json
from state.redis_admin.pulse import PulseSender
from state.redis_admin.topology_reader import TopologyReader
from state.redis_owner.store import RedisStore
from tests.conftest import Backend
from tests.support.stores.builders import acquire


def new_store(backend: Backend, nonce: str) -> RedisStore:
    store = RedisStore("redis://test", "wc", client=backend.client())
    store.check_server()
    acquire(store, nonce)
    return store


def said_by_the_older(
    store: RedisStore, *, was_dropped: bool = False, pause: Callable[[float], None] = lambda seconds: None
) -> str:
    with pytest.raises(FencedError) as caught, newer_run_named(store, pause):
        raise FencedError("wc", was_dropped)
    return str(caught.value)


def test_the_newer_run_is_named_once_it_has_told_where_it_runs(backend: Backend) -> None:
    older, newer = new_store(backend, "a" * 32), new_store(backend, "b" * 32)
    assert "by a newer coordinator, so this run stops" in said_by_the_older(older)
    sender = PulseSender(newer)
    run = RunIdentity(fence=sender.fence, host="node7", pid=8713, user="ada")
    sender.send({RUN_FIELD: to_json(run), NOW_FIELD: to_json(RunFigures()), SEEN_FIELD: "1.0"})
    assert "by a newer coordinator on node7, pid 8713, as ada, so this run stops" in said_by_the_older(older)
    assert "node7" not in said_by_the_older(older, was_dropped=True)


def test_it_is_given_a_moment_to_tell(backend: Backend) -> None:
    older, newer = new_store(backend, "a" * 32), new_store(backend, "b" * 32)
    sender, pauses = PulseSender(newer), list[float]()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            run = RunIdentity(fence=sender.fence, host="node7", pid=8713, user="ada")
            sender.send({RUN_FIELD: to_json(run), NOW_FIELD: to_json(RunFigures()), SEEN_FIELD: "1.0"})

    assert "on node7, pid 8713" in said_by_the_older(older, pause=pause)
    assert pauses == [NAME_PAUSE_S] * 3


def test_a_server_that_cannot_be_asked_is_not_waited_for(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    older, pauses = new_store(backend, "a" * 32), list[float]()

    def unreachable(*_: object, **__: object) -> None:
        raise StateUnreachableError("no answer")

    monkeypatch.setattr(TopologyReader, "overview", unreachable)
    assert "by a newer coordinator, so this run stops" in said_by_the_older(older, pause=pauses.append)
    assert pauses == []


def test_what_an_older_run_has_told_names_nobody(backend: Backend) -> None:
    older = new_store(backend, "a" * 32)
    sender = PulseSender(older)
    run = RunIdentity(fence=sender.fence, host="node1", pid=1, user="eve")
    sender.send({RUN_FIELD: to_json(run), NOW_FIELD: to_json(RunFigures()), SEEN_FIELD: "1.0"})
    new_store(backend, "b" * 32)
    assert "node1" not in said_by_the_older(older)
