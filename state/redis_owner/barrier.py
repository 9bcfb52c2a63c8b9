"""Finds out, without blocking a run, when a server has made the owner's writes as durable as the run asked.

A barrier is a small write of the owner, fenced and in its sequence, and a question that follows on the same connection.
If that connection breaks, both are repeated: on a new connection the question alone would be answered at once, whatever
was lost.

Level replica asks WAIT, which answers for the last write of its connection and everything before it. Level fsync asks
for the settings: with appendfsync always, a server syncs all its writes before it sends any reply, this one included.
WAITAOF would be the obvious question, but cannot be trusted: under appendfsync everysec, Redis from 7.4 on and Valkey
(seen on 9.1.2) confirm writes that no fdatasync has followed; Redis fixed it in 2025 (redis/redis#13793).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import redis

from state.errors import StateRefusedError
from state.records.durability import Durability, DurabilityLevel
from state.redis_client.connection import RedisConnection
from state.redis_client.redis_errors import Remedy, stop_error
from state.redis_client.whereabouts import FollowingClient
from state.redis_owner.measured_durability import SYNC_SETTINGS, appendfsync_of
from state.troubles import Trouble


class OwnConnection(Protocol):
    """The connection that a barrier needs; the simulator implements its own."""

    def execute_command(self, *arguments: Any) -> Any:
        """Sends a command, connecting first if there is no connection, and returns its reply."""

    def ask(self, *arguments: Any) -> None:
        """Sends a command on the last command's connection, and does not wait for the reply."""

    def answer(self, timeout_s: float) -> Any | None:
        """Returns the reply to `ask`, None if it does not arrive in time."""

    def close(self) -> None:
        """Breaks the connection; the next command makes another."""


class PooledConnection:
    """A connection taken from a client's pool; used by `Barrier`, on one thread.

    Every call raises redis.RedisError if the connection broke or the server refused; no question is open after that.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._pool = client, client.connection_pool
        self.follows = bool(getattr(client, "follows", False))
        self._connection: Any = None
        self._is_asked = False

    def execute_command(self, *arguments: Any) -> Any:
        """Sends a command, connecting first if there is no connection; an open question is given up."""
        if self._is_asked:
            self.close()
        if self._connection is None:
            self._connection = self._pool.get_connection()
        try:
            self._connection.send_command(*arguments)
            return self._connection.read_response()
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise

    def ask(self, *arguments: Any) -> None:
        if self._connection is None:
            raise redis.ConnectionError("the connection of the last command is closed")
        try:
            self._connection.send_command(*arguments)
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise
        self._is_asked = True

    def answer(self, timeout_s: float) -> Any | None:
        if not self._is_asked:
            raise redis.ConnectionError("nothing was asked on this connection")
        try:
            if not self._connection.can_read(timeout_s):
                return None
            self._is_asked = False
            return self._connection.read_response()
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise

    def leave(self, error: redis.RedisError) -> None:
        """Breaks the connection; the next one leads to wherever the server is by then."""
        self.close()
        assert isinstance(self._client, FollowingClient)
        self._client.leave(error)

    def close(self) -> None:
        """Breaks the connection and returns it to the pool."""
        connection, self._connection, self._is_asked = self._connection, None, False
        if connection is not None:
            with suppress(redis.RedisError, OSError):
                connection.disconnect()
            self._pool.release(connection)


ASK_MS = 5_000
"""How long the server waits before it reports how many replicas have confirmed."""
SILENT_S = 15.0
"""A connection that is silent for this long counts as dead."""


def require_syncs(reply: Any, server: str) -> None:
    """Refuses a server whose reply to `SYNC_SETTINGS` no longer confirms durability fsync."""
    if (found := appendfsync_of(reply)) != "always":
        raise StateRefusedError(
            f"server {server} has appendfsync {found!r} now, and had 'always' when the run started, so it no longer "
            "confirms durability fsync; what is committed stays; set it back and run again"
        ).about(Trouble.DURABILITY)


class Barrier:
    """One question at a time about one run's writes (driver, on the run's thread).

    Args:
        connection: used by nothing else.
        wrapped: the same connection with retries, for the write.
        asked: the level, fsync or replica.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        connection: OwnConnection,
        wrapped: RedisConnection,
        asked: Durability,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._connection, self.wrapped = connection, wrapped
        self._asked, self._clock = asked, clock
        self._write: Callable[[], None] | None = None
        self._asked_s = 0.0

    @property
    def is_open(self) -> bool:
        return self._write is not None

    def ask(self, write: Callable[[], None]) -> None:
        """Asks about everything written so far; returns once the write is made.

        `write` makes the owner's small write on `wrapped`; it is called again if the connection breaks.
        """
        self._write = write
        self._write_and_ask()

    def answer(self, timeout_s: float = 0.0) -> bool:
        """Returns whether the level is confirmed by now; if not, keeps asking.

        Raises:
            StateRefusedError: the server can no longer provide the level.
            TransactionError: the write had to be made again, and failed.
        """
        try:
            reply = self._connection.answer(timeout_s)
        except redis.RedisError as error:
            if self.wrapped.remedy_of(error) is not Remedy.RETRY:
                raise self._refused(error) from error
            self._write_and_ask()
            return False
        if reply is None:
            if self._clock() - self._asked_s > SILENT_S:
                self._connection.close()
                self._write_and_ask()
            return False
        if self._is_reached(reply):
            self._write = None
            return True
        self._ask()
        return False

    def close(self) -> None:
        """Gives up an open question and closes the connection."""
        self._write = None
        self._connection.close()

    def _write_and_ask(self) -> None:
        assert self._write is not None
        self._write()
        self._ask()

    def _ask(self) -> None:
        """Asks; if the connection breaks here, the next call of `answer` notices that and begins again."""
        self._asked_s = self._clock()
        try:
            self._connection.ask(*self._question())
        except (redis.ConnectionError, redis.TimeoutError):
            self._connection.close()

    def _question(self) -> tuple[str, ...]:
        if self._asked.level is DurabilityLevel.REPLICA:
            return ("WAIT", str(self._asked.replicas), str(ASK_MS))
        return SYNC_SETTINGS

    def _is_reached(self, reply: Any) -> bool:
        if self._asked.level is DurabilityLevel.REPLICA:
            return int(reply) >= self._asked.replicas
        require_syncs(reply, self.wrapped.server)
        return True

    def _refused(self, error: redis.RedisError) -> StateRefusedError:
        return StateRefusedError(
            f"{stop_error(error, self.wrapped.server)}; it no longer confirms durability {self._asked.level.value}, as "
            "it did when the run started; what is committed stays, and a new run continues from there"
        ).about(Trouble.DURABILITY)
