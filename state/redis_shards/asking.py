"""Calls shards of one server together: their calls travel in one packet, and each has its own reply.

A conversation with a shard is a generator that yields calls and is sent their replies. So it may call several times,
for instance while it waits, and need not know whether its shard is called alone.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from state.redis_client.connection import FunctionCall, RedisConnection

Result = TypeVar("Result")
Asking = Generator[FunctionCall, Any, Result]
"""A conversation with a shard; its calls are idempotent."""


def asked_together(asked: Sequence[tuple[RedisConnection, Asking[Result]]]) -> list[Result]:
    """Returns the result of each shard's conversation; all connections lead to one server.

    Raises:
        TransactionError: the first error of any shard; no call is under way then.
    """
    results: dict[int, Result] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(asked)))
    while replies:
        calls: dict[int, FunctionCall] = {}
        errors: list[Exception] = []
        for number, reply in replies.items():
            try:
                calls[number] = asked[number][1].send(reply)
            except StopIteration as answered:
                results[number] = answered.value
            except Exception as error:  # noqa: BLE001 - raised once all replies are taken in
                errors.append(error)
        if errors:
            raise errors[0]
        replies = dict(zip(calls, _sent([(asked[number][0], call) for number, call in calls.items()]), strict=True))
    return [results[number] for number in range(len(asked))]


def _sent(calls: Sequence[tuple[RedisConnection, FunctionCall]]) -> list[Any]:
    if len(calls) > 1:
        return calls[0][0].functions(calls)
    return [connection.function(name, *arguments) for connection, (name, arguments) in calls]
