"""One connection of a client, for questions that depend on it: WAIT vouches only for what its own connection wrote.

A client takes any connection of its pool, and connects again without telling. Here a question is asked on the very
connection of the last command, or not at all, and its answer can be fetched later, so that nobody has to wait for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

import redis


class OwnConnection(Protocol):
    """What a barrier needs from a connection; the simulator has one of its own."""

    def execute_command(self, *arguments: Any) -> Any:
        """Sends a command, connecting first if there is no connection, and returns its reply."""

    def ask(self, *arguments: Any) -> None:
        """Sends a command on the connection of the last one, and does not wait for its reply."""

    def answer(self, timeout_s: float) -> Any | None:
        """Returns the reply to `ask`, None if it does not arrive in time."""

    def close(self) -> None:
        """Breaks the connection; the next command makes another."""


class PooledConnection:
    """A connection taken from a client's pool; used by `Barrier`, on one thread.

    Args:
        client: a redis-py client, or one of fakeredis.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._pool = client.connection_pool
        self._connection: Any = None
        self._is_asked = False

    def execute_command(self, *arguments: Any) -> Any:
        """Sends a command, connecting first if there is no connection; an open question is given up.

        Raises:
            redis.RedisError: the connection broke, or the server refused; either way there is no question open.
        """
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
        """Sends a command on the connection of the last one.

        Raises:
            redis.ConnectionError: that connection is broken.
        """
        if self._connection is None:
            raise redis.ConnectionError("the connection of the last command is closed")
        try:
            self._connection.send_command(*arguments)
        except (redis.ConnectionError, redis.TimeoutError):
            self.close()
            raise
        self._is_asked = True

    def answer(self, timeout_s: float) -> Any | None:
        """Returns the reply to `ask`, None if it does not arrive in time.

        Raises:
            redis.RedisError: the connection broke, or the server refused.
        """
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

    def close(self) -> None:
        """Breaks the connection and gives its place back to the pool."""
        connection, self._connection, self._is_asked = self._connection, None, False
        if connection is not None:
            with suppress(redis.RedisError, OSError):
                connection.disconnect()
            self._pool.release(connection)
