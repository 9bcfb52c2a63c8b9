"""A server's replies about whole states, as values: the commands that read a state, and their decoded replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import redis

from state.codec import pack
from state.records.stored_records import Content, Entries, StreamPosition
from state.redis_client.connection import pairs_of, text_of
from state.redis_owner.arguments import float_text
from state.values.state_kind import StateKind

Commands: TypeAlias = Mapping[StateKind, tuple[tuple[str, ...], tuple[str, ...]]]
"""The command that reads a whole state of each kind: the words before the key and those after it."""
READ_COMMANDS: Commands = {
    StateKind.HASH: (("HGETALL",), ()),
    StateKind.VALUE: (("GET",), ()),
    StateKind.SET: (("SMEMBERS",), ()),
    StateKind.SORTED_SET: (("ZRANGE",), ("0", "-1", "WITHSCORES")),
    StateKind.LIST: (("LRANGE",), ("0", "-1")),
    StateKind.STREAM: (("XRANGE",), ("-", "+")),
    StateKind.HYPERLOGLOG: (("PFCOUNT",), ()),  # its bytes depend on the order of its members, its count does not
}
WHOLE_COMMANDS: Commands = {**READ_COMMANDS, StateKind.HYPERLOGLOG: (("GET",), ())}
"""The commands that read a whole state as it is stored."""


@dataclass(frozen=True, slots=True)
class WholeReply:
    """The reply about one whole state; `expires_ms` is when its key expires, in milliseconds since 1970, None if never.

    `position` is set for an existing stream.
    """

    kind: StateKind
    reply: Any
    expires_ms: int | None
    position: StreamPosition | None = None


Read: TypeAlias = tuple[dict[str, str], dict[str, WholeReply]]
"""A control hash, and whole states by name."""


def expiry_of(reply: Any) -> int | None:
    return int(reply) if int(reply) >= 0 else None


def position_of(reply: Any) -> StreamPosition | None:
    """Returns the position in a reply to XINFO STREAM, None if it is missing or never had an entry."""
    if isinstance(reply, redis.RedisError):
        return None
    facts = {text_of(name): value for name, value in pairs_of(reply)}
    position = StreamPosition(text_of(facts["last-generated-id"]), int(facts.get("entries-added", facts["length"])))
    return position if position.added else None


def stored_pairs(reply: Any) -> dict[bytes, bytes]:
    return {bytes(name): as_stored(value) for name, value in pairs_of(reply)}


def as_stored(value: Any) -> bytes:
    return float_text(value).encode() if isinstance(value, float) else bytes(value)


def content_of(kind: StateKind, reply: Any) -> Content:
    match kind:
        case StateKind.VALUE:
            return None if reply is None else bytes(reply)
        case StateKind.HYPERLOGLOG:
            return str(int(reply)).encode()
        case StateKind.SET:
            return frozenset(map(bytes, reply))
        case StateKind.LIST:
            return tuple(map(bytes, reply))
        case StateKind.STREAM:
            return dict(entries_of(kind, reply))
        case StateKind.SORTED_SET:  # servers spell one score differently: 0.1, 0.10000000000000001
            return {member: repr(float(score)).encode() for member, score in stored_pairs(reply).items()}
    return stored_pairs(reply)


def entries_of(kind: StateKind, reply: Any) -> Entries:
    """Returns the reply to one of `WHOLE_COMMANDS` as entries."""
    match kind:
        case StateKind.HASH | StateKind.SORTED_SET:
            return list(stored_pairs(reply).items())
        case StateKind.SET:
            return [(bytes(member), b"") for member in reply]
        case StateKind.LIST:
            return [(b"", bytes(item)) for item in reply]
        case StateKind.STREAM:
            entries = ((bytes(entry_id), stored_pairs(fields).items()) for entry_id, fields in reply)
            return [(entry_id, pack([*chain.from_iterable(pairs)])) for entry_id, pairs in entries]
    return [] if reply is None else [(b"", bytes(reply))]
