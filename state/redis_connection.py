"""One idempotent call to a server, repeated until it is answered or the time is up.

redis-py re-sends a command up to ten times on its own; here that is off. The loop is ours, bounded, and
only ever wraps calls that are idempotent and fenced, so "unknown outcome" simply means "ask again".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from state.errors import ProtocolError, StateRefusedError, StateUnreachableError
from state.redis_errors import Remedy, redact, remedy_of, stop_sentence

LIBRARY_NAME = "txbatch_2"
SOCKET_TIMEOUT_S = 30.0
"""A commit of 500,000 operations may block the server for three seconds, a slow disk for longer."""
CONNECT_TIMEOUT_S = 5.0
FIRST_PAUSE_S, LAST_PAUSE_S = 0.02, 1.0
REFRESH_LIMIT = 3


@cache
def library_code() -> str:
    """The source of the function library."""
    return Path(__file__).with_name("redis_functions.lua").read_text(encoding="utf-8")


def connect(url: str) -> redis.Redis:
    """A client that has not connected yet and never repeats anything by itself.

    Raises:
        StateRefusedError: the URL cannot be understood.
    """
    try:
        client: redis.Redis = redis.Redis.from_url(
            url,
            retry=Retry(NoBackoff(), 0),
            retry_on_timeout=False,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            decode_responses=False,
            protocol=2,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise StateRefusedError(
            f"redis url {redact(url)!r} cannot be used; give redis://host:6379, rediss://host:6379 or "
            f"unix:///path/to/socket ({type(error).__name__})"
        ) from None
    return client


class RedisConnection:
    """A client with our retry loop around it; used by `RedisStore` and `RedisReader`, from any thread.

    Args:
        client: a redis-py or fakeredis client.
        server: how messages name the server, without credentials.
        timeout_s: how long one call is repeated before it is given up.
        revive: brings an embedded server back; called after a lost connection, before the next try.
        clock, sleep: seconds, injected by tests.
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
        self._clock, self._sleep = clock, sleep

    def call(self, *arguments: str | bytes, timeout_s: float | None = None) -> Any:
        """Sends one idempotent command until it is answered.

        Raises:
            StateRefusedError: the server answered that it cannot, or may not, do this.
            StateUnreachableError: no answer within the time allowed; the outcome is unknown.
            ProtocolError: the arguments cannot be sent at all.
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        started, pause, refreshes = self._clock(), FIRST_PAUSE_S, 0
        while True:
            try:
                return self.client.execute_command(*arguments)
            except redis.DataError as error:
                raise ProtocolError(f"command {arguments[0]!r} cannot be sent: {error}") from error
            except redis.RedisError as error:
                remedy, last = remedy_of(error), error
            if remedy is Remedy.REFRESH and refreshes < REFRESH_LIMIT:
                refreshes += 1
                self.load_library()
                continue
            if remedy is not Remedy.RETRY:
                raise StateRefusedError(stop_sentence(last, self.server)) from last
            if self._clock() - started + pause > limit_s:
                raise StateUnreachableError(
                    f"server {self.server} gave no answer for {limit_s:g} s, last: {last}; "
                    "start it or check its address, then run again: nothing is lost"
                ) from last
            self._sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_S)
            if self._revive is not None and isinstance(last, (redis.ConnectionError, redis.TimeoutError)):
                self._revive()

    def function(self, name: str, *arguments: str | bytes, read_only: bool = False) -> Any:
        """Calls `name` of the function library; `arguments` start with the number of keys.

        Raises:
            StateRefusedError, StateUnreachableError, ProtocolError: as `call`.
        """
        return self.call("FCALL_RO" if read_only else "FCALL", f"{LIBRARY_NAME}_{name}", *arguments)

    def load_library(self) -> None:
        """Loads the function library unless the server has this very code already.

        A user who may not manage functions gets no error here: somebody else loads them for him.

        Raises:
            StateRefusedError, StateUnreachableError: as `call`.
        """
        code = library_code()
        try:
            found = self.call("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY_NAME, "WITHCODE")
            if not _holds(found, code.encode()):
                self.call("FUNCTION", "LOAD", "REPLACE", code)
        except StateRefusedError as error:
            if not isinstance(error.__cause__, redis.exceptions.NoPermissionError):
                raise

    def close(self) -> None:
        """Closes the sockets."""
        self.client.close()


def _holds(reply: Any, code: bytes) -> bool:
    if isinstance(reply, dict):
        return any(_holds(item, code) for item in reply.values())
    if isinstance(reply, (list, tuple)):
        return any(_holds(item, code) for item in reply)
    return bool(reply == code)
