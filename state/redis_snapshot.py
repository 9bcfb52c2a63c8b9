"""All of a topology's state at one moment, decoded as declared: for tests, checks and exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import redis

from state.errors import StateRefusedError, StateUnreachableError
from state.html_tables import bounded_repr, section, states_table
from state.keys import Keys
from state.printable import said_by
from state.redis_errors import stop_sentence
from state.state_handle import StateHandle
from state.stored_value import decode_stored
from state.write_set import StateKind


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state between two commits.

    Attributes:
        txid: the last committed transaction, 0 before the first.
        states: state name -> dict (hash, sorted set), set, list, or the value (None if there is none).
    """

    txid: int
    states: dict[str, Any]

    def __repr__(self) -> str:
        return f"Snapshot(txid={self.txid}, states={bounded_repr(self.states)})"

    def _repr_html_(self) -> str:
        return section(states_table(self.states, caption=f"state as of txid {self.txid:,}"))


def snapshot(client: Any, topology_id: str, handles: Iterable[StateHandle]) -> Snapshot:
    """Reads whole states at one moment, with one MULTI.

    Call it from anywhere except inside a transaction. It fetches everything at once; read large states with the
    client's own commands.

    Args:
        client: a client of the server. One that decodes its answers (``decode_responses=True``) lends its settings to
            a connection of our own, because what is not text cannot be read through it.
        topology_id: the topology whose state to read.
        handles: the states to read, as declared: ``[StoreCounts.counts]``.

    Raises:
        StateRefusedError: a key, or a value in it, does not have the declared type.
        StateUnreachableError: the server did not answer.
    """
    keys, wanted = Keys(topology_id), list(handles)
    try:
        with _of_bytes(client) as raw, raw.pipeline(transaction=True) as pipeline:
            pipeline.hget(keys.control, "committed")
            for handle in wanted:
                _ask(pipeline, handle.kind, keys.state(handle.name))
            committed, *replies = pipeline.execute(raise_on_error=False)
    except redis.RedisError as error:
        raise StateUnreachableError(f"server of topology {topology_id!r} did not answer: {said_by(error)}") from error
    for reply in (committed, *replies):
        if isinstance(reply, Exception):
            raise StateRefusedError(stop_sentence(reply, f"of topology {topology_id!r}")) from reply
    states = {handle.name: _decoded(handle, reply) for handle, reply in zip(wanted, replies, strict=True)}
    return Snapshot(int(committed or 0), states)


@contextmanager
def _of_bytes(client: Any) -> Iterator[Any]:
    """Yields the client, or one with the same settings that returns bytes."""
    pool: Any = getattr(client, "connection_pool", None)
    settings = getattr(pool, "connection_kwargs", {})
    if not settings.get("decode_responses"):
        yield client
        return
    own = redis.ConnectionPool(connection_class=pool.connection_class, **{**settings, "decode_responses": False})
    with closing(redis.Redis(connection_pool=own)) as raw:
        try:
            yield raw
        finally:
            own.disconnect()


def _ask(pipeline: Any, kind: StateKind, key: str) -> None:
    match kind:
        case StateKind.HASH:
            pipeline.hgetall(key)
        case StateKind.VALUE:
            pipeline.get(key)
        case StateKind.SET:
            pipeline.smembers(key)
        case StateKind.SORTED_SET:
            pipeline.zrange(key, 0, -1, withscores=True)
        case StateKind.LIST:
            pipeline.lrange(key, 0, -1)


def _decoded(handle: StateHandle, reply: Any) -> Any:
    where = f"state {handle.name!r}"

    def fields(values: Iterable[bytes]) -> list[Any]:
        return [decode_stored(value, handle.field_type, where) for value in values]

    def values(stored: Iterable[bytes]) -> list[Any]:
        return [decode_stored(value, handle.value_type, where) for value in stored]

    match handle.kind:
        case StateKind.HASH:
            return dict(zip(fields(reply), values(reply.values()), strict=True))
        case StateKind.VALUE:
            return None if reply is None else decode_stored(reply, handle.value_type, where)
        case StateKind.SET:
            return set(fields(reply))
        case StateKind.SORTED_SET:
            return dict(zip(fields(member for member, _ in reply), (score for _, score in reply), strict=True))
        case StateKind.LIST:
            return values(reply)
