"""Sends one idempotent call to a server, repeatedly until it is answered or time is up.

redis-py's own retries, up to ten, are switched off. Our loop is bounded and wraps only calls that are idempotent and
fenced, so after an unknown outcome it is safe to repeat the call.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.errors import ProtocolError, StateRefusedError, StateUnreachableError, TransactionError
from state.fault_points import reached
from state.printable import message_of
from state.redis_client import function_library
from state.redis_client.address import address_at, check_address, is_encrypted, kind_of, places_of
from state.redis_client.function_library import LIBRARY_NAME
from state.redis_client.packed_call import packed_call
from state.redis_client.redis_errors import (
    MOVING_CODES,
    Remedy,
    error_code,
    has_moved,
    hint_for,
    library_replaced_error,
    remedy_of,
    stop_error,
)
from state.redis_client.whereabouts import CONNECT_TIMEOUT_S, Encrypted, FollowingClient


def text_of(item: Any) -> str:
    """Returns an item of a reply as text; bytes that are not valid UTF-8 are escaped."""
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


def texts_by_name(items: Sequence[Any] | Mapping[Any, Any]) -> dict[str, str]:
    return {text_of(name): text_of(value) for name, value in pairs_of(items)}


def pairs_of(reply: Sequence[Any] | Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yields names and values of a reply, which redis-py returns as a mapping, a flat list or a list of pairs."""
    if isinstance(reply, Mapping):
        yield from reply.items()
    elif reply and isinstance(reply[0], (tuple, list)):
        yield from reply
    else:
        yield from zip(reply[::2], reply[1::2], strict=True)


SOCKET_TIMEOUT_S = 30.0
"""A commit of 500,000 operations may block the server for three seconds; a slow disk may block it for longer."""
FIRST_PAUSE_S, LAST_PAUSE_S = 0.02, 1.0
REFRESH_LIMIT = 3
ENTRIES_AT_ONCE = 1_000
"""Entries in one reply, few enough that a reader does not block commits."""
AWAY_MIN_S = 1.0
"""A server that fails to answer for longer than this is reported: in the log at once, and in the summary."""
SLOW_MIN_S = 5.0
"""A server that takes longer than this to answer the first try is reported too: it, or its disk, was stalled."""

FunctionCall = tuple[str, Sequence[str | bytes]]
"""Name and arguments of a call to the function library; the arguments start with the number of keys."""

_LOG = logging.getLogger("txbatch.redis")


def connect(url: str, *, key: str = "", socket_timeout_s: float | None = None) -> redis.Redis:
    """Returns a client that is not connected yet and never retries on its own.

    One answer may take `socket_timeout_s`, by default `SOCKET_TIMEOUT_S`. In a cluster it connects to the owner of
    `key`, or without `key` to the node that owned the last key used.
    """
    check_address(url)
    timeout_s = SOCKET_TIMEOUT_S if socket_timeout_s is None else socket_timeout_s
    options: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "retry_on_timeout": False,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": min(CONNECT_TIMEOUT_S, timeout_s),
        "decode_responses": False,
        "protocol": 2,
    }
    if kind_of(url):
        following = FollowingClient.from_url(address_at(url, places_of(url)[0]), **options)
        assert isinstance(following, FollowingClient)
        following.follow(url, key)
        return following
    client: redis.Redis = redis.Redis.from_url(url, **options)
    if is_encrypted(url):
        client.connection_pool.connection_class = Encrypted
    return client


class RedisConnection:
    """Wraps a client in our retry loop; used from any thread.

    Args:
        client: a redis-py or fakeredis client; if its server may move, it has `follows` and `leave`.
        server: the server's name in messages, without credentials.
        timeout_s: how long one call is repeated before it is given up.
        revive: restarts an embedded server; called after a lost connection, before the next try.
        clock, sleep: in seconds; injected by tests.

    Attributes:
        away_count: how often the server did not answer for more than `AWAY_MIN_S`, or was slow.
        away_s: the total of those times, in seconds.
        busy_s: how much longer the last write took than the quickest so far, in seconds: round trip and disk take about
            equally long for any write. 0 if the write had to be repeated.
    """

    def __init__(
        self,
        client: Any,
        server: str,
        *,
        timeout_s: float,
        revive: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client, self.server = client, server
        self._timeout_s, self._revive = timeout_s, revive
        self._follows = bool(getattr(client, "follows", False))
        self._clock, self._sleep = clock, sleep
        self.away_count, self.away_s = 0, 0.0
        self.busy_s, self._took_s, self._quickest_s = 0.0, math.inf, math.inf

    @property
    def follows(self) -> bool:
        """Whether the server may move."""
        return self._follows

    @property
    def moves(self) -> int:
        """How often the server has moved; 0 if it cannot."""
        return int(getattr(self.client, "moves", 0))

    def remedy_of(self, error: redis.RedisError) -> Remedy:
        return remedy_of(error, may_move=self._follows)

    def call(self, *arguments: str | bytes, timeout_s: float | None = None) -> Any:
        """Sends one idempotent command until it is answered.

        Raises:
            StateRefusedError: the server refused the command.
            StateUnreachableError: no answer in time; the outcome is unknown.
            ProtocolError: the arguments cannot be encoded.
        """
        command, *rest = map(text_of, arguments[:2])
        return self._repeated(lambda: self.client.execute_command(*arguments), command, timeout_s, *rest)

    def call_or_none(self, *command: str) -> Any:
        """Returns the reply to a command; None if the key has the wrong type, so other software wrote it."""
        try:
            return self.call(*command)
        except StateRefusedError as error:
            if isinstance(error.__cause__, redis.RedisError) and error_code(error.__cause__) == "WRONGTYPE":
                return None
            raise

    def info(self, timeout_s: float | None = None) -> Mapping[str, Any]:
        """Returns the reply to INFO, from a primary if the server may move; raises as `call`."""

        def asked() -> Any:
            found = self.client.execute_command("INFO")
            if self._follows and text_of(found.get("role", "master")) == "slave":
                raise redis.ReadOnlyError("it is a replica by now")
            return found

        found: Mapping[str, Any] = self._repeated(asked, "INFO", timeout_s)
        return found

    def transaction(self, commands: Sequence[Sequence[str]], timeout_s: float | None = None) -> list[Any]:
        """Returns the replies of one idempotent MULTI, errors of single commands among them; raises as `call`."""

        def asked() -> Any:
            with self.client.pipeline(transaction=True) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return pipeline.execute(raise_on_error=False)

        return list(self._repeated(asked, "MULTI", timeout_s))

    def _repeated(self, send: Callable[[], Any], name: str, timeout_s: float | None, key: str = "") -> Any:
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        started, refreshes, loads = self._clock(), 0, 0
        pause = 0.0 if self._follows else FIRST_PAUSE_S  # a cluster's first node usually names another one
        last: redis.RedisError | None = None
        while True:
            try:
                reply = send()
            except redis.DataError as error:
                raise ProtocolError(f"command {name!r} cannot be sent: {message_of(error)}") from error
            except redis.RedisError as error:
                remedy, last = self.remedy_of(error), error
                if self._follows and has_moved(error):
                    self.client.leave(error)
            else:
                self._answered(self._clock() - started, last)
                return reply
            if remedy is Remedy.REFRESH and refreshes < REFRESH_LIMIT:
                refreshes += 1
                loads += self.load_library()
                continue
            if remedy is Remedy.REFRESH and loads == REFRESH_LIMIT:
                raise library_replaced_error(self.server, loads) from last
            if remedy is not Remedy.RETRY:
                raise stop_error(last, self.server, key) from last
            waited_s = self._clock() - started
            if waited_s + pause > limit_s:
                raise self._unreachable(limit_s, last) from last
            if waited_s <= AWAY_MIN_S < waited_s + pause:
                what = "is moving a slot" if error_code(last) in MOVING_CODES else "does not answer"
                _LOG.warning("server %s %s (%s); trying again", self.server, what, message_of(last))
            self._sleep(pause)
            pause = min(max(2 * pause, FIRST_PAUSE_S), LAST_PAUSE_S)
            if self._revive is not None and isinstance(last, (redis.ConnectionError, redis.TimeoutError)):
                self._revive()

    def _answered(self, took_s: float, last: redis.RedisError | None) -> None:
        """Records an answer's duration, and reports a long one; `last` is the error before, None on the first try."""
        self._took_s = took_s if last is None else math.inf
        if took_s < (SLOW_MIN_S if last is None else AWAY_MIN_S):
            return
        self.away_count += 1
        self.away_s += took_s
        if last is None:
            _LOG.warning("server %s took %.1f s to answer one call; nothing is lost", self.server, took_s)
        else:
            reason = message_of(last)
            _LOG.warning("server %s was away for %.1f s (%s); nothing is lost", self.server, took_s, reason)

    def _unreachable(self, limit_s: float, last: redis.RedisError) -> TransactionError:
        if error_code(last) in MOVING_CODES:
            return StateUnreachableError(
                f"server {self.server} is moving a slot of the topology to another node, and has not ended after "
                f"{limit_s:g} s (it said: {error_code(last)} {message_of(last)}); do it again then; nothing is lost"
            )
        return StateUnreachableError(
            f"server {self.server} did not answer for {limit_s:g} s; last error: {message_of(last)}"
            f"{hint_for(last, self.server)}; start it or check its address, then run again; nothing is lost"
        )

    def function(self, name: str, *arguments: str | bytes, read_only: bool = False) -> Any:
        """Calls function `name` of the library; `arguments` start with the number of keys."""
        reply = self.call("FCALL_RO" if read_only else "FCALL", f"{LIBRARY_NAME}_{name}", *packed_call(arguments))
        if not read_only:
            self._note_write()
        return reply

    def functions(self, calls: Sequence[tuple[RedisConnection, FunctionCall]]) -> list[Any]:
        """Calls functions for several connections to this server, in one packet, and returns the replies.

        A call that fails, or stays unanswered, is repeated over its own connection; raises as `function`.
        """
        replies: list[Any] = [redis.RedisError()] * len(calls)
        started = self._clock()
        with suppress(redis.RedisError), self.client.pipeline(transaction=False) as pipeline:
            for connection, (name, arguments) in calls:
                connection.busy_s = 0.0
                pipeline.execute_command("FCALL", f"{LIBRARY_NAME}_{name}", *packed_call(arguments))
            replies = pipeline.execute(raise_on_error=False)
            self._answered(self._clock() - started, None)
            self._note_write()
        return [
            connection.function(name, *arguments) if isinstance(reply, redis.RedisError) else reply
            for (connection, (name, arguments)), reply in zip(calls, replies, strict=True)
        ]

    def _note_write(self) -> None:
        self._quickest_s = min(self._quickest_s, self._took_s)
        self.busy_s = self._took_s - self._quickest_s if self._took_s < math.inf else 0.0

    def scanned(self, command: str, *key: str, match: str | None = None) -> Iterator[Any]:
        """Yields the keys of a server, or with HSCAN, SSCAN or ZSCAN the entries of one key, in pieces.

        An entry that moves meanwhile may be yielded twice. A StateUnreachableError means that the pieces are from two
        servers: a cursor is not valid on another server, nor on the same one after a restart.
        """
        cursor, pattern = "0", () if match is None else ("MATCH", match)
        place = key[0] if key else match or ""
        scanned_server = self._identity(place)
        for pieces in count(1):  # ends when the server's cursor returns to 0
            found = self.call(command, *key, cursor, *pattern, "COUNT", str(ENTRIES_AT_ONCE))
            cursor = text_of(found[0])
            is_last, is_one = cursor == "0", pieces == 1 and not self._follows
            if is_last and not is_one and self._identity(place) != scanned_server:
                raise StateUnreachableError(
                    f"server {self.server} was restarted or has moved while its keys were listed; do it again"
                )
            yield found[1]
            if is_last:
                return

    def keys_like(self, pattern: str) -> Iterator[Any]:
        """Yields the keys of one slot that match, in pieces; raises as `scanned`, and if the slot is being moved.

        SCAN does not reveal keys that a node has handed over, but a request for a missing key does.
        """
        yield from self.scanned("SCAN", match=pattern)
        self.call("EXISTS", pattern)

    def _identity(self, key: str) -> str:
        """Returns the id of the server process for a key, "" if unknown; waits until a cluster has moved its slot."""
        if self._follows:
            self.call("EXISTS", key)
        try:
            return text_of(self.call("INFO", "server").get("run_id", ""))
        except StateRefusedError:  # no right to call INFO, or a server in memory
            return ""

    def everywhere(self) -> Iterator[RedisConnection]:
        """Yields a connection to each primary of a cluster; for any other server, this connection."""
        primaries = getattr(self.client, "primaries", list)
        places = self._repeated(primaries, "CLUSTER", None)
        if not places:
            yield self
        for place in places:
            with closing(self.client.at(place)) as client:
                yield RedisConnection(
                    client, self.server, timeout_s=self._timeout_s, clock=self._clock, sleep=self._sleep
                )

    def load_library(self) -> bool:
        """Loads the function library unless the server already has exactly this code.

        A user without the right to manage functions gets no error here: another user loads the library for them.
        Returns whether the server has the library now, as far as this user can know.
        """
        code = function_library.library_code()
        try:
            found = self.call("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY_NAME, "WITHCODE")
            if not holds_code(found, code.encode()):
                reached("library.loading")
                self.call("FUNCTION", "LOAD", "REPLACE", code)
                reached("library.loaded")
        except StateRefusedError as error:
            if not isinstance(error.__cause__, redis.exceptions.NoPermissionError):
                raise
            return False
        return True

    def close(self) -> None:
        self.client.close()


def holds_code(reply: Any, code: bytes) -> bool:
    """Returns whether the reply to FUNCTION LIST WITHCODE has a library with exactly this code."""
    if isinstance(reply, dict):
        return any(holds_code(item, code) for item in reply.values())
    if isinstance(reply, (list, tuple)):
        return any(holds_code(item, code) for item in reply)
    return bool(reply == code)
