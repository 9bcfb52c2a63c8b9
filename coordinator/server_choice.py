"""Which server a run or a command talks to: a given one, or the private one of a data directory.

One rule for the command line and for `run`: what is given wins, then the environment, then the default directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from state.errors import StateRefusedError, TopologyError
from state.redis_address import redact
from state.redis_embedded import EmbeddedServer
from state.redis_encryption import require_encryption
from state.redis_reader import URL_VARIABLE
from state.redis_topology import RedisTopology

DEFAULT_DATA_DIR = ".txbatch"
LOOK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, repr=False)
class ServerChoice:
    """Where the state is.

    Attributes:
        redis_url: a server's address, perhaps with a password; None for the private server.
        data_dir: the private server's directory.
        allow_plaintext: whether another machine may be spoken to without TLS.
    """

    redis_url: str | None
    data_dir: Path
    allow_plaintext: bool = False

    def __str__(self) -> str:
        if self.redis_url is not None:
            return redact(self.redis_url)
        return f"the private server in {str(self.data_dir)!r}"

    @contextmanager
    def store(self, topology_id: str) -> Iterator[RedisTopology]:
        """A topology, to look at what is there or remove it; a private server is not started where there never was one.

        Raises:
            TopologyError: the data directory was never used, the id is not a name, or the address is none.
            StateRefusedError: the server cannot be used.
        """
        if self.redis_url is not None:
            require_encryption(self.redis_url, allow_plaintext=self.allow_plaintext)
            store = RedisTopology(self.redis_url, topology_id, unreachable_timeout_s=LOOK_TIMEOUT_S)
            try:
                yield store
            finally:
                store.close()
            return
        try:
            was_used = (self.data_dir / "lock").is_file()
        except OSError as error:
            raise StateRefusedError(
                f"data directory {str(self.data_dir)!r} cannot be looked into: {error.strerror}; choose another "
                "--data-dir"
            ) from error
        if not was_used:
            raise TopologyError(
                f"data directory {str(self.data_dir)!r} holds no state; give --data-dir, or --redis for a server"
            )
        with EmbeddedServer(self.data_dir) as server:
            store = RedisTopology(server.url, topology_id, unreachable_timeout_s=LOOK_TIMEOUT_S)
            try:
                yield store
            finally:
                store.close()


def choose_server(
    redis_url: str | None,
    data_dir: str | Path | None,
    environment: Mapping[str, str] = os.environ,
    *,
    allow_plaintext: bool = False,
) -> ServerChoice:
    """What the options, or the arguments of `run`, say; they win over the environment.

    Raises:
        TopologyError: both options are given.
    """
    if redis_url is not None and data_dir is not None:
        raise TopologyError(
            "--redis and --data-dir exclude each other (in Python redis_url and data_dir exclude each other): the "
            "latter is for a private server"
        )
    if redis_url is None and data_dir is None:
        redis_url = environment.get(URL_VARIABLE) or None
    return ServerChoice(redis_url, Path(data_dir or DEFAULT_DATA_DIR), allow_plaintext)
