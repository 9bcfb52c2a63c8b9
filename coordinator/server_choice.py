"""Chooses the server of a run or a command: the one that is given, or the private one of a data directory.

The command line and `run` follow the same rule: first the options, then the environment, then the default directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from coordinator.topology.building.topology import Topology
from state.errors import StateRefusedError, TopologyError
from state.records.topology_overview import ListedTopology
from state.redis_admin.topology import RedisTopology
from state.redis_admin.topology_reader import TopologyReader, reader_at
from state.redis_client.address import from_environment, redact, require_encryption
from state.redis_owner.reader import URL_VARIABLE
from state.redis_owner.slot import ConnectionOptions
from state.redis_owner.store import RedisStore
from state.redis_server.embedded import EmbeddedServer
from state.troubles import Trouble

DEFAULT_DATA_DIR = ".txbatch"
LOOK_TIMEOUT_S = 10.0
ANY_TOPOLOGY = "any"
"""Takes the place of a topology id where no particular topology is meant."""


def open_store(url: str, topology: Topology, **options: Unpack[ConnectionOptions]) -> RedisStore:
    """Returns the store of a topology, whether in one slot or in many; `options` are as for `RedisTopology`."""
    if topology.shard_count == 1:
        return RedisStore(url, topology.topology_id, **options)
    from state.redis_shards.sharded_store import ShardedStore  # few topologies need it

    return ShardedStore(url, topology.topology_id, shard_count=topology.shard_count, **options)


@dataclass(frozen=True, slots=True, repr=False)
class ServerChoice:
    """The server that holds the state; the private one if it has no address. It is printed without its password."""

    redis_url: str | None
    data_dir: Path
    allow_plaintext: bool = False

    def __str__(self) -> str:
        if self.redis_url is not None:
            return redact(self.redis_url)
        return f"the private server in {str(self.data_dir)!r}"

    @contextmanager
    def store(self, topology_id: str, *, may_create: bool = False) -> Iterator[RedisTopology]:
        """Yields a topology, to be inspected, dropped or imported.

        Unless `may_create`, a private server is started only in a directory that has had one before.

        Raises:
            TopologyError: the data directory was never used, or the topology id or the address is invalid.
            StateRefusedError: the server cannot be used.
        """
        self._refuse_unused(may_create=may_create)
        with self.address() as (url, _), closing(_topology(url, topology_id)) as store:
            yield store

    def topologies(self) -> list[ListedTopology]:
        """Returns the topologies that the server holds, by id; raises as `store`."""
        self._refuse_unused()
        with self.address() as (url, _), closing(_topology(url, ANY_TOPOLOGY)) as store:
            return store.all_topologies()

    @contextmanager
    def reader(self) -> Iterator[TopologyReader]:
        """Yields a view of all topologies of the server that changes none of them; raises as `store`.

        If a private server ends meanwhile, with the run that started it, the next look starts it again.
        """
        self._refuse_unused()
        with self.address() as (url, revive), closing(reader_at(url, revive=revive)) as reader:
            yield reader

    def unknown_topology(self, topology_id: str, hint: str = "") -> TopologyError:
        return TopologyError(
            f"topology {topology_id!r} is not stored on {self}; check the topology id and the server{hint}"
        ).about(Trouble.UNKNOWN_TOPOLOGY)

    @contextmanager
    def address(self, *, syncs_always: bool = False) -> Iterator[tuple[str, Callable[[], None] | None]]:
        """Yields the server's address; a private server is started, and comes with a function that starts it again.

        With `syncs_always`, a private server syncs its file at each write.
        """
        if self.redis_url is not None:
            require_encryption(self.redis_url, allow_plaintext=self.allow_plaintext)
            yield self.redis_url, None
            return
        with EmbeddedServer(self.data_dir, syncs_always=syncs_always) as server:
            yield server.url, server.ensure

    def _refuse_unused(self, *, may_create: bool = False) -> None:
        """Refuses a private server in a directory that never had one: inspecting must not start a server."""
        if self.redis_url is not None:
            return
        try:
            was_used = (self.data_dir / "lock").is_file()
        except OSError as error:
            raise StateRefusedError(
                f"data directory {str(self.data_dir)!r} cannot be read: {error.strerror}; choose another --data-dir"
            ) from error
        if not was_used and not may_create:
            raise TopologyError(
                f"data directory {str(self.data_dir)!r} holds no state; give another --data-dir, or --redis for a "
                "server"
            ).about(Trouble.UNKNOWN_TOPOLOGY)


def _topology(url: str, topology_id: str) -> RedisTopology:
    return RedisTopology(url, topology_id, unreachable_timeout_s=LOOK_TIMEOUT_S)


def choose_server(
    redis_url: str | None,
    data_dir: str | Path | None,
    environment: Mapping[str, str] = os.environ,
    *,
    allow_plaintext: bool = False,
) -> ServerChoice:
    """Returns the server named by the options, or by the arguments of `run`; they override the environment.

    Raises:
        TopologyError: both options are given.
    """
    if redis_url is not None and data_dir is not None:
        raise TopologyError(
            "--redis and --data-dir exclude each other (in Python, redis_url and data_dir); leave one of them out: "
            "--data-dir is for a private server"
        )
    if redis_url is None and data_dir is None:
        redis_url = from_environment(URL_VARIABLE, environment) or None
    return ServerChoice(redis_url, Path(data_dir or DEFAULT_DATA_DIR), allow_plaintext)
