"""Clients of a server that may move: the primary that sentinels name, or the node of a cluster that owns a slot.

The server is located before each new connection, and again after `leave`; each new connection checks that it leads to a
primary, and to the owner of the client's key. Nothing here repeats a call; `RedisConnection` does, and leaves a place
that is gone or wrong by now. If a server that has moved has lost writes, the revision that every call of an owner
expects reveals it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.cluster import parse_cluster_slots
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from state.errors import TopologyError
from state.redis_client.address import (
    CLUSTER,
    Place,
    address_at,
    is_encrypted,
    kind_of,
    places_of,
    redact,
    require_encryption_at,
    sentinel_login,
    service_of,
)
from state.troubles import Trouble

CONNECT_TIMEOUT_S = 5.0
KNOWN_MAX = 1_000
"""Most nodes of a cluster to remember, including those in the address."""


class Encrypted(redis.SSLConnection):
    """Limits the TLS handshake to the connect timeout: a port without TLS never answers it."""

    def _wrap_socket_with_ssl(self, sock: Any) -> Any:
        sock.settimeout(CONNECT_TIMEOUT_S)
        encrypted = super()._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call] # redis-py's own
        encrypted.settimeout(self.socket_timeout)
        return encrypted


class Following(redis.Connection):
    """A connection to the server's place at the time of connecting; it is closed if that place was left since.

    It never reconnects silently: a barrier's question must not travel on another connection than its write.
    """

    def __init__(self, *, whereabouts: ServerLocator, **options: Any) -> None:
        super().__init__(**options, redis_connect_func=whereabouts.settle)  # type: ignore[no-untyped-call] # redis-py's
        self._whereabouts = whereabouts
        self.place: Place = ("", 0)
        self.is_settled = False

    def _connect(self) -> Any:
        self.is_settled = False
        self.place = self.host, self.port = self._whereabouts.find()
        return super()._connect()  # type: ignore[no-untyped-call] # redis-py's own

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if self.is_settled and self._whereabouts.has_left(self.place):
            self.is_settled = False
            self.disconnect()  # type: ignore[no-untyped-call] # redis-py's own
            raise redis.ConnectionError("the server has moved")
        super().send_packed_command(command, check_health)  # type: ignore[no-untyped-call] # redis-py's own


class FollowingEncrypted(Following, Encrypted):
    """The same with TLS."""


class ServerLocator(ABC):
    """Finds one client's server; used from any thread.

    Args:
        url: the address of sentinels or of a cluster.
        key: a key that the server must own, "" for any primary.

    Attributes:
        moves: how often a connection settled at another place than the one before.
    """

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._lock = threading.Lock()
        self._settled: Place | None = None
        self.moves = 0

    def find(self) -> Place:
        """Returns the place to connect to next; raises redis.RedisError if it cannot be found."""
        with self._lock:
            place = self._find()
        require_encryption_at(self._url, place)
        return place

    def settle(self, connection: Any) -> None:
        """Logs in at a place and checks that it is the right one; called by redis-py on each new connection."""
        try:
            connection.on_connect()
            self._check(connection)
        except BaseException:
            connection.disconnect()  # redis-py disconnects only for its own errors
            raise
        with self._lock:
            self.moves += self._settled not in (None, connection.place)
            self._settled, connection.is_settled = connection.place, True

    @property
    def settled(self) -> Place | None:
        """The place where the server was found last."""
        return self._settled

    def has_left(self, place: Place) -> bool:
        """Returns whether a later connection has settled at another place."""
        return self._settled != place

    @abstractmethod
    def leave(self, error: redis.RedisError) -> None:
        """Forgets the server's place, or replaces it if the error names the new one."""

    @abstractmethod
    def _find(self) -> Place: ...

    def _check(self, connection: Any) -> None:
        role = ask(connection, "INFO", "replication")
        if b"role:master" not in role:
            raise redis.ReadOnlyError(f"{connection.host}:{connection.port} is a replica by now")


def ask(connection: Any, *command: str) -> Any:
    connection.send_command(*command)
    return connection.read_response()


class SentinelWhereabouts(ServerLocator):
    """Finds the primary of a service by asking sentinels before each connection."""

    def __init__(self, url: str, key: str) -> None:
        super().__init__(url, key)
        options = parse_url(address_at(url, places_of(url)[0]))  # type: ignore[no-untyped-call] # redis-py's own
        shared = {name: value for name, value in options.items() if name.startswith(("ssl_", "socket_"))}
        shared = {"socket_timeout": CONNECT_TIMEOUT_S, "socket_connect_timeout": CONNECT_TIMEOUT_S} | shared
        login = {**sentinel_login(url), "ssl": "connection_class" in options, "protocol": 2}
        self._sentinels = Sentinel(  # type: ignore[no-untyped-call] # redis-py's own
            places_of(url), sentinel_kwargs={**shared, **login, "retry": Retry(NoBackoff(), 0)}
        )

    def leave(self, error: redis.RedisError) -> None:
        """Nothing to forget: the sentinels are asked anyway."""

    def _find(self) -> Place:
        service = service_of(self._url)
        try:
            host, port = self._sentinels.discover_master(service)  # type: ignore[no-untyped-call] # redis-py's own
        except MasterNotFoundError as error:
            if "Authentication" in str(error):
                raise redis.AuthenticationError(
                    "a sentinel asks for another password; give it as sentinel_password=, with sentinel_username= if "
                    "it has users"
                ) from None
            raise redis.ConnectionError(f"no sentinel that answers knows a primary of {service!r} that is up") from None
        except redis.ResponseError as error:
            if "unknown command" not in str(error):
                raise
            raise TopologyError(
                f"server {redact(self._url)} is not a sentinel: it does not know the command SENTINEL; name sentinels, "
                "or write redis:// for a server"
            ).about(Trouble.SERVER_ADDRESS) from error
        return str(host), int(port)


class ClusterWhereabouts(ServerLocator):
    """Finds the node that owns the client's key, or the key of the last redirected call.

    Nodes are tried in turn until one knows the owner; without `CLUSTER SLOTS`, only those in the address are known.
    """

    def __init__(self, url: str, key: str) -> None:
        super().__init__(url, key)
        self._known = places_of(url)
        self._owner: Place | None = None
        self._tried = 0

    def leave(self, error: redis.RedisError) -> None:
        with self._lock:
            self._owner = None
            if isinstance(error, redis.exceptions.MovedError):  # without a host it means the node that was asked
                host = error.host or (self._settled or self._known[0])[0]
                self._owner = host, error.port
                self._learn([self._owner])

    def primaries(self, connection: Any) -> list[Place]:
        """Returns every primary that has slots."""
        return sorted({each["primary"] for each in self._slots(connection).values()})

    def _find(self) -> Place:
        if self._owner is not None:
            return self._owner
        self._tried += 1
        return self._known[(self._tried - 1) % len(self._known)]

    def _check(self, connection: Any) -> None:
        try:
            nodes = list(self._slots(connection).values())
        except redis.exceptions.NoPermissionError:
            nodes = []
        except redis.ResponseError as error:
            if "cluster support disabled" not in str(error):
                raise
            raise TopologyError(f"server {redact(self._url)} is not a cluster; write redis:// for a server").about(
                Trouble.SERVER_ADDRESS
            ) from error
        with self._lock:
            self._learn(chain.from_iterable([each["primary"], *each["replicas"]] for each in nodes))
        if self._key:
            ask(connection, "EXISTS", self._key)  # any node but the owner answers with the owner's place
        else:
            super()._check(connection)
        with self._lock:
            self._owner = connection.place

    def _slots(self, connection: Any) -> dict[Any, dict[str, Any]]:
        reply = ask(connection, "CLUSTER", "SLOTS")
        found: dict[Any, dict[str, Any]] = parse_cluster_slots(reply, current_host=connection.host)
        return found

    def _learn(self, places: Iterator[Place] | list[Place]) -> None:
        self._known = list(dict.fromkeys([*self._known, *places]))[:KNOWN_MAX]


class FollowingClient(redis.Redis):
    """A redis-py client for a server that may move."""

    follows = True
    whereabouts: ServerLocator
    _url: str

    def follow(self, url: str, key: str) -> None:
        """Makes every connection find its server; called once, before the first connection."""
        self._url = url
        self.whereabouts = (ClusterWhereabouts if kind_of(url) == CLUSTER else SentinelWhereabouts)(url, key)
        pool = self.connection_pool
        pool.connection_class = FollowingEncrypted if is_encrypted(url) else Following
        pool.connection_kwargs["whereabouts"] = self.whereabouts

    @property
    def moves(self) -> int:
        return self.whereabouts.moves

    def place_of(self, key: str) -> Place | None:
        """Returns the place where the owner of the client's key was found last."""
        return self.whereabouts.settled

    def owner_of(self, key: str) -> FollowingClient:
        """Returns another client, connected to the cluster node that owns a key."""
        options = {name: each for name, each in self.connection_pool.connection_kwargs.items() if name != "whereabouts"}
        other = FollowingClient(connection_pool=redis.ConnectionPool(**options))
        other.follow(self._url, key)
        return other

    def leave(self, error: redis.RedisError) -> None:
        """Makes the next command locate the server and connect to it."""
        self.whereabouts.leave(error)
        self.connection_pool.disconnect(inuse_connections=False)

    def primaries(self) -> list[Place]:
        """Returns every primary of a cluster, [] for other servers."""
        if not isinstance(self.whereabouts, ClusterWhereabouts):
            return []
        connection = self.connection_pool.get_connection()
        try:
            return self.whereabouts.primaries(connection)
        finally:
            self.connection_pool.release(connection)

    def at(self, place: Place) -> redis.Redis:
        """Returns a client of one node, which does not follow moves."""
        require_encryption_at(self._url, place)
        options = {**self.connection_pool.connection_kwargs, "host": place[0], "port": place[1]}
        del options["whereabouts"]
        kind = Encrypted if is_encrypted(self._url) else redis.Connection
        return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=kind, **options))
