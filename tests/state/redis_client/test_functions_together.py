"""Calls for several connections to one server travel in one packet; what is not answered is called again by its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import redis
from redis import exceptions

from state.errors import StateRefusedError, StateUnreachableError
from state.redis_client.connection import FunctionCall, RedisConnection
from state.redis_client.function_library import LIBRARY_NAME
from state.redis_shards.asking import asked_together
from tests.support.stores.scripted_client import Scripted, Time


class Packing(Scripted):
    """Answers what comes in packets by a script of its own: a list of replies, or what goes wrong on the way."""

    def __init__(self, *packets: Any, alone: Any = b"alone") -> None:
        super().__init__(alone)
        self.packets, self.packed = list(packets), list[list[str]]()

    def pipeline(self, transaction: bool) -> AbstractContextManager[Packet]:
        assert not transaction
        return nullcontext(Packet(self))


class Packet:
    """One packet."""

    def __init__(self, client: Packing) -> None:
        self.client = client
        client.packed.append([])

    def execute_command(self, *arguments: Any) -> None:
        self.client.packed[-1].append(arguments[-1])

    def execute(self, raise_on_error: bool) -> Any:
        assert not raise_on_error
        replies = self.client.packets.pop(0)
        if isinstance(replies, Exception):
            raise replies
        return replies


def asking(*steps: str, refuses: str = "") -> Generator[FunctionCall, Any, list[Any]]:
    """Calls once for each step, and returns the replies; raises where a reply is to be refused."""
    replies = []
    for step in steps:
        replies.append((yield "stage", ["0", step]))
        if replies[-1] == refuses.encode():
            raise StateRefusedError(refuses)
    return replies


def together(clients: list[Packing], askings: list[Generator[FunctionCall, Any, list[Any]]]) -> list[list[Any]]:
    """What each of several connections is answered."""
    return asked_together(list(zip(connected(*clients), askings, strict=True)))


def connected(*clients: Any) -> list[RedisConnection]:
    time = Time()
    return [
        RedisConnection(client, "redis://here", timeout_s=5.0, clock=time.clock, sleep=time.sleep) for client in clients
    ]


def test_all_travel_together_as_long_as_there_are_several() -> None:
    first, *others = Packing([b"1", b"2", b"3"], [b"4", b"5"], alone=b"6"), Packing(), Packing()
    answers = together([first, *others], [asking("a", "d", "f"), asking("b", "e"), asking("c")])
    assert answers == [[b"1", b"4", b"6"], [b"2", b"5"], [b"3"]]
    assert first.packed == [["a", "b", "c"], ["d", "e"]]
    assert first.commands == [("FCALL", f"{LIBRARY_NAME}_stage", "0", "f")]
    assert [each.commands for each in others] == [[], []]


@pytest.mark.parametrize(
    "error",
    [exceptions.MovedError("3999 127.0.0.1:6381"), exceptions.ResponseError("LOADING"), exceptions.TryAgainError("x")],
)
def test_one_that_is_answered_by_an_error_goes_its_own_way(error: redis.RedisError) -> None:
    clients = [Packing([b"1", error, b"3"]), Packing(), Packing()]
    assert together(clients, [asking("a"), asking("b"), asking("c")]) == [[b"1"], [b"alone"], [b"3"]]
    assert [len(each.commands) for each in clients] == [0, 1, 0]


@pytest.mark.parametrize("error", [redis.ConnectionError("reset"), redis.TimeoutError("late")])
def test_all_go_their_own_way_when_the_packet_is_lost(error: redis.RedisError) -> None:
    clients = [Packing(error), Packing(), Packing()]
    assert together(clients, [asking("a"), asking("b"), asking("c")]) == [[b"alone"]] * 3
    assert [len(each.commands) for each in clients] == [1, 1, 1]


def test_the_first_refusal_is_raised_once_the_others_have_their_replies() -> None:
    clients = [Packing([b"1", b"no", b"3"]), Packing(), Packing()]
    last = asking("c")
    with pytest.raises(StateRefusedError, match="no"):
        together(clients, [asking("a"), asking("b", refuses="no"), last])
    with pytest.raises(StopIteration):
        next(last)


def test_a_server_that_is_gone_is_waited_for_once() -> None:
    gone = redis.ConnectionError("refused")
    clients = [Packing(gone, alone=gone), Packing(), Packing()]
    with pytest.raises(StateUnreachableError):
        together(clients, [asking("a"), asking("b"), asking("c")])
    assert [each.commands for each in clients[1:]] == [[], []]


def test_how_busy_a_server_was_is_told_by_the_first_of_its_connections_alone() -> None:
    connections = connected(Packing([b"1", b"2"]), Packing())
    connections[1].busy_s = 3.0
    asked_together(list(zip(connections, [asking("a"), asking("b")], strict=True)))
    assert [each.busy_s for each in connections] == [0.0, 0.0]
