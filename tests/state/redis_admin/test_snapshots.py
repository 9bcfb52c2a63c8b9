"""Whole states at one moment, decoded as they were declared."""

from __future__ import annotations

import pytest

from state import HashState, ListState, SetState, SortedSetState, ValueState
from state.errors import StateRefusedError
from state.kinds.state_handle import StateHandle
from state.redis_admin.snapshots import snapshot

HANDLES: list[StateHandle] = [
    HashState("counts", value=int),
    HashState("names", value=str, field=int),
    ValueState("total", value=float),
    ValueState("nothing"),
    SetState("members", value=bytes),
    SortedSetState("ranks"),
    ListState("log", value=int),
]


def test_every_kind_of_state_is_decoded_as_it_was_declared(backend):
    client = backend.client()
    client.hset("{t}:txbatch:control", "committed", "7")
    client.hset("{t}:counts", mapping={"a": "1", "é": "-2"})
    client.hset("{t}:names", mapping={"3": "three"})
    client.set("{t}:total", "0.5")
    client.sadd("{t}:members", b"\xff", b"x")
    client.zadd("{t}:ranks", {"first": 1.5})
    client.rpush("{t}:log", 3, 1, 2)
    found = snapshot(client, "t", HANDLES)
    assert found.txid == 7
    assert found.states == {
        "counts": {"a": 1, "é": -2},
        "names": {3: "three"},
        "total": 0.5,
        "nothing": None,
        "members": {b"\xff", b"x"},
        "ranks": {"first": 1.5},
        "log": [3, 1, 2],
    }


def test_a_topology_that_never_ran_is_empty(backend):
    found = snapshot(backend.client(), "t", HANDLES[:1])
    assert (found.txid, found.states) == (0, {"counts": {}})


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (("SET", "{t}:counts", "1"), "holds a key of another type"),
        (("HSET", "{t}:counts", "a", "many"), "state 'counts' holds b'many', but is declared as int"),
    ],
)
def test_a_key_and_a_value_of_another_type_are_refused(backend, stored, message):
    client = backend.client()
    client.hset("{t}:txbatch:control", "committed", "7")
    client.execute_command(*stored)
    with pytest.raises(StateRefusedError, match=message):
        snapshot(client, "t", HANDLES[:1])


def test_a_client_that_decodes_its_answers_reads_the_same_even_what_is_not_text(backend):
    client = backend.client(decode_responses=True)
    client.hset("{t}:txbatch:control", "committed", "7")
    client.hset("{t}:counts", mapping={"a": "1", "é": "-2"})
    client.sadd("{t}:members", b"\xff", b"x")
    client.zadd("{t}:ranks", {"first": 1.5})
    read = snapshot(client, "t", HANDLES)
    assert read == snapshot(backend.client(), "t", HANDLES)
    assert read.states["members"] == {b"\xff", b"x"}
    assert client.hget("{t}:counts", "é") == "-2"
