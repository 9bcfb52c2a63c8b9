"""Reads Redis Streams by ranges of ids, and trims them; from the driver and from executors.

Every request is one round trip. A request without an answer raises `FailedException`, so the transaction is tried
again; a request that the server refuses raises `SourceError`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import redis

from state.errors import FailedException, SourceError, StateError
from state.printable import message_of
from state.redis_client.address import kind_of, redact, require_encryption
from state.redis_client.connection import RedisConnection, connect, text_of
from state.redis_client.redis_errors import Remedy, error_code, stop_sentence

BEGINNING = "0-0"
"""An id before all entries."""
NUMBERS = 2**64
"""How many values each half of an id can have."""
MOVE_TIMEOUT_S = 30.0
"""How long a request is repeated to a server that may move; other servers get it once."""
Entry = tuple[str, list[bytes]]
"""Id, and alternating fields and values."""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """A stream at one moment; a missing stream counts as empty.

    Attributes:
        length: number of entries in it.
        added: number of entries that were ever added.
        last_id: id of the last entry that was added, even if it was removed since.
        first_id: id of the first entry that is there; empty if there is none.
    """

    length: int = 0
    added: int = 0
    last_id: str = BEGINNING
    first_id: str = ""

    @property
    def removed(self) -> int:
        return self.added - self.length


def id_order(entry_id: str) -> tuple[int, int]:
    """Returns the key by which ids are compared."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


class StreamReader:
    """Streams of one server; connections are kept per process and URL (driver, executor).

    Every call raises SourceError if the key is not a stream or the server refuses access, and FailedException if the
    server does not answer.
    """

    def __init__(self, url: str) -> None:
        self._server = redact(url)
        timeout_s = MOVE_TIMEOUT_S if kind_of(url) else 0.0
        self._connection = RedisConnection(_process_client(url, os.getpid()), self._server, timeout_s=timeout_s)

    def facts(self, key: str) -> StreamFacts:
        facts: StreamFacts
        (facts,) = self._ask(key, ("XINFO", "STREAM", key))
        return facts

    def after(self, key: str, entry_id: str, count: int) -> tuple[StreamFacts, list[Entry]]:
        """Returns the first entries after an id, and the facts of the stream at that moment."""
        range_after = ("XRANGE", key, f"({entry_id}", "+", "COUNT", str(count))
        facts, entries = self._ask(key, ("XINFO", "STREAM", key), range_after)
        return facts, _entries(entries)

    def between(self, key: str, first_id: str, last_id: str, count: int) -> list[Entry]:
        """Returns at most `count` entries of a range of ids, both ends included."""
        (entries,) = self._ask(key, ("XRANGE", key, first_id, last_id, "COUNT", str(count)))
        return _entries(entries)

    def trim(self, key: str, through_id: str) -> None:
        """Removes every entry up to and including an id."""
        milliseconds, sequence = id_order(through_id)
        carry, sequence = divmod(sequence + 1, NUMBERS)
        kept = ("MINID", f"{milliseconds + carry}-{sequence}") if milliseconds + carry < NUMBERS else ("MAXLEN", "0")
        self._ask(key, ("XTRIM", key, *kept))

    def _ask(self, key: str, *commands: tuple[str, ...]) -> list[Any]:
        try:
            replies = self._connection.transaction(commands)
        except StateError as error:
            cause = error.__cause__
            assert isinstance(cause, redis.RedisError)
            raise self._error(key, cause) from cause
        return [self._answer(key, reply) for reply in replies]

    def _answer(self, key: str, reply: Any) -> Any:
        if isinstance(reply, redis.ResponseError) and "no such key" in str(reply):
            return StreamFacts()
        if isinstance(reply, redis.RedisError):
            raise self._error(key, reply) from reply
        if isinstance(reply, (dict, list)) and (facts := _facts(reply)) is not None:
            return facts
        return reply

    def _error(self, key: str, error: redis.RedisError) -> FailedException | SourceError:
        if self._connection.remedy_of(error) is Remedy.RETRY:
            hint = (
                "; if it is always so, give a smaller take: it may bound its answers" if "closed" in str(error) else ""
            )
            return FailedException(
                f"stream server {self._server} gave no answer for {key!r}: {message_of(error)}{hint}"
            )
        if error_code(error) not in ("", "NOPERM", "WRONGTYPE") or isinstance(error, redis.ConnectionError):
            return SourceError(f"stream {key!r} cannot be read: {stop_sentence(error, self._server)}")
        return SourceError(
            f"stream {key!r} of server {self._server} cannot be read: {message_of(error)}; check that the key is a "
            "stream and that this user may use XINFO, XRANGE, MULTI, and XTRIM if it is to be trimmed"
        )


@lru_cache(maxsize=8)
def _process_client(url: str, _process_id: int) -> redis.Redis:
    """Returns the client of all emitters of a process; a forked process makes its own."""
    require_encryption(url)
    client = connect(url)
    client.response_callbacks.pop("XRANGE", None)  # it makes a dict of an entry, which would lose duplicate fields
    return client


def _entries(reply: Sequence[Any]) -> list[Entry]:
    return [(entry_id.decode(), list(flat)) for entry_id, flat in reply if flat is not None]


def _facts(reply: Any) -> StreamFacts | None:
    """Returns the facts in a reply to XINFO STREAM; None for a reply to another command."""
    if isinstance(reply, list):
        if not reply or not isinstance(reply[0], bytes):
            return None
        reply = dict(zip(reply[::2], reply[1::2], strict=False))
    found = {text_of(name): value for name, value in reply.items()}
    if "last-generated-id" not in found:
        return None
    length = int(found["length"])
    first_id = text_of(found["first-entry"][0]) if length else ""
    return StreamFacts(length, int(found.get("entries-added", length)), text_of(found["last-generated-id"]), first_id)
