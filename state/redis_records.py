"""Reads everything a server holds of a topology, with plain commands only: for `txbatch verify`.

It uses no function of the library, so it reads a restored copy on any server, as a user who may load nothing, and it
shares no code with what it checks. It changes nothing. What has to be of one moment is read by one MULTI; single
values are checked as they are met, in pieces that block the server for a moment only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import redis

from state.dead_letters import DEAD_LETTERS_STATE
from state.errors import StateRefusedError, StateUnreachableError
from state.keys import Keys
from state.printable import said_by
from state.redis_connection import RedisConnection
from state.redis_errors import Remedy, remedy_of, stop_error
from state.redis_replies import text_of
from state.stored_records import MISSING, Content, StateImage, StoredKey, StoredRecords
from state.troubles import Trouble
from state.write_set import StateKind

PIECE = 1_000
"""Entries in one reply, so that a reader never blocks a server that commits."""
IMAGE_ENTRIES_MAX = 1_000_000
"""Most entries of all states in one image: it is read by one MULTI, which blocks the server for about a second."""

_COUNT = {
    StateKind.HASH: "HLEN",
    StateKind.VALUE: "EXISTS",
    StateKind.SET: "SCARD",
    StateKind.SORTED_SET: "ZCARD",
    StateKind.LIST: "LLEN",
}
_WHOLE: Mapping[StateKind, tuple[tuple[str, ...], tuple[str, ...]]] = {
    StateKind.HASH: (("HGETALL",), ()),
    StateKind.VALUE: (("GET",), ()),
    StateKind.SET: (("SMEMBERS",), ()),
    StateKind.SORTED_SET: (("ZRANGE",), ("0", "-1", "WITHSCORES")),
    StateKind.LIST: (("LRANGE",), ("0", "-1")),
}
_SCAN = {StateKind.HASH: "HSCAN", StateKind.SET: "SSCAN", StateKind.SORTED_SET: "ZSCAN"}

Entries = list[tuple[bytes, bytes]]
"""Field and value, or member and score; an empty one stands for what a kind has none of."""


class RedisRecords:
    """What a server holds of one topology (driver); made for each command, by `RedisTopology.records`.

    Args:
        connection: to the server.
        keys: of the topology.
    """

    def __init__(self, connection: RedisConnection, keys: Keys) -> None:
        self._connection = connection
        self.keys = keys

    def records(self) -> StoredRecords:
        """Returns what txbatch stores of the topology, all of one moment.

        Raises:
            StateRefusedError: the server refuses a command.
            StateUnreachableError: no answer.
        """
        own = (self.keys.control, self.keys.metadata, self.keys.receipts)
        asked = [*(("TYPE", key) for key in own), *(("HGETALL", key) for key in own)]
        replies = self._at_once(asked)
        kinds = {key: text_of(reply) for key, reply in zip(own, replies[:3], strict=True)}
        control, metadata, receipts = (
            {} if isinstance(reply, redis.ResponseError) else _pairs(reply) for reply in replies[3:]
        )
        return StoredRecords(
            kinds,
            {text_of(name): text_of(value) for name, value in control.items()},
            {text_of(name): value for name, value in metadata.items()},
            {text_of(txid): text_of(value) for txid, value in receipts.items()},
        )

    def stored_keys(self) -> Iterator[StoredKey]:
        """Yields every key below the topology's hash tag, each once; a key that vanishes meanwhile is left out."""
        cursor, seen = "0", set()
        while True:  # ends when the server's cursor has come round
            cursor, found = self._scanned("SCAN", cursor, "MATCH", self.keys.pattern, "COUNT", str(PIECE))
            for key in (key for key in found if key not in seen):
                seen.add(key)
                kind = text_of(self._connection.call("TYPE", key))
                if kind != MISSING:
                    yield StoredKey(text_of(key), kind, int(self._connection.call("PTTL", key)))
            if cursor == "0":
                return

    def quarantined(self) -> dict[str, bytes]:
        """Returns txid -> record of each batch that is quarantined; their number is limited."""
        found = _pairs(self._connection.call("HGETALL", self.keys.quarantine))
        return {text_of(txid): packed for txid, packed in found.items()}

    def letters(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields member and score of each dead letter."""
        for piece in self.entries(DEAD_LETTERS_STATE, StateKind.SORTED_SET):
            yield from piece

    def entries(self, name: str, kind: StateKind) -> Iterator[Entries]:
        """Yields the entries of a state in pieces; what changes meanwhile may be met twice, as it was and as it is.

        Raises:
            StateRefusedError: the key has another type, or the server refuses a command.
            StateUnreachableError: no answer in time.
        """
        key = self.keys.state(name)
        if kind is StateKind.VALUE:
            value = self._connection.call("GET", key)
            yield [] if value is None else [(b"", bytes(value))]
        elif kind is StateKind.LIST:
            yield from self._items(key)
        else:
            yield from self._scanned_entries(key, kind)

    def image(self, kinds: Mapping[str, StateKind]) -> StateImage:
        """Returns whole states at one moment.

        Args:
            kinds: state name -> its declared kind; none of the keys may have another type.

        Raises:
            StateRefusedError: the states are too large to be read at once, or the server refuses a command.
            StateUnreachableError: no answer.
        """
        names = sorted(kinds)
        counts = [self._connection.call(_COUNT[kinds[name]], self.keys.state(name)) for name in names]
        total = sum(map(int, counts))
        if total > IMAGE_ENTRIES_MAX:
            raise StateRefusedError(
                f"the states of topology {self.keys.topology_id!r} hold {total:,} entries, more than the "
                f"{IMAGE_ENTRIES_MAX:,} that are compared at one moment; verify it without --refold"
            )
        asked: list[tuple[str, ...]] = [("HGET", self.keys.control, "committed")]
        for name in names:
            head, tail = _WHOLE[kinds[name]]
            asked.append((*head, self.keys.state(name), *tail))
        committed, *replies = self._at_once(asked)
        for reply in (committed, *replies):
            if isinstance(reply, redis.RedisError):
                raise stop_error(reply, self._connection.server) from reply
        states = {name: _content(kinds[name], reply) for name, reply in zip(names, replies, strict=True)}
        return StateImage("" if committed is None else text_of(committed), states)

    def _items(self, key: str) -> Iterator[Entries]:
        start = 0
        while found := self._connection.call("LRANGE", key, str(start), str(start + PIECE - 1)):
            yield [(b"", bytes(item)) for item in found]
            start += PIECE

    def _scanned_entries(self, key: str, kind: StateKind) -> Iterator[Entries]:
        cursor = "0"
        while True:  # ends when the server's cursor has come round
            cursor, found = self._scanned(_SCAN[kind], key, cursor, "COUNT", str(PIECE))
            if kind is StateKind.SET:
                yield [(bytes(member), b"") for member in found]
            else:
                yield list(_pairs(found).items())
            if cursor == "0":
                return

    def _scanned(self, *command: str) -> tuple[str, Any]:
        cursor, found = self._connection.call(*command)
        return text_of(cursor), found

    def _at_once(self, commands: Sequence[tuple[str, ...]]) -> list[Any]:
        """Returns the replies of one MULTI; an error of one command is returned in its place."""
        connection = self._connection
        try:
            with connection.client.pipeline(transaction=True) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(pipeline.execute(raise_on_error=False))
        except redis.RedisError as error:
            if "EXEC without MULTI" in str(error):  # redis-py reports this instead of the reason
                raise StateRefusedError(
                    f"server {connection.server} does not let this user run MULTI, which reads records at one moment; "
                    f"grant what `txbatch acl {self.keys.topology_id}` prints"
                ).about(Trouble.SERVER_RIGHTS) from error
            if remedy_of(error) is not Remedy.RETRY:
                raise stop_error(error, connection.server) from error
            raise StateUnreachableError(
                f"server {connection.server} did not answer; last error: {said_by(error)}; nothing was changed, so "
                "try again"
            ) from error


def _pairs(reply: Any) -> dict[bytes, bytes]:
    """Returns a reply of names and values, which redis-py hands out as a mapping, a flat list or a list of pairs."""
    if isinstance(reply, Mapping):
        return {bytes(name): _bytes(value) for name, value in reply.items()}
    if reply and isinstance(reply[0], (tuple, list)):
        return {bytes(name): _bytes(value) for name, value in reply}
    return {bytes(reply[i]): _bytes(reply[i + 1]) for i in range(0, len(reply), 2)}


def _bytes(value: Any) -> bytes:
    return repr(value).encode() if isinstance(value, float) else bytes(value)


def _content(kind: StateKind, reply: Any) -> Content:
    match kind:
        case StateKind.VALUE:
            return None if reply is None else bytes(reply)
        case StateKind.SET:
            return frozenset(map(bytes, reply))
        case StateKind.LIST:
            return tuple(map(bytes, reply))
        case StateKind.SORTED_SET:  # servers spell one score differently: 0.1, 0.10000000000000001
            return {member: repr(float(score)).encode() for member, score in _pairs(reply).items()}
    return _pairs(reply)
