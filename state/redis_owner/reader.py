"""Point reads of committed state from executors, each at a known txid."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from state.errors import StaleReadError, StateRefusedError, TopologyError
from state.keys import Keys
from state.redis_client.address import from_environment, redact, require_encryption
from state.redis_client.connection import RedisConnection, connect
from state.troubles import Trouble
from state.values.shards import SHARDS_MAX, shard_of
from state.values.state_kind import Field, StateKind

READ_TIMEOUT_S = 10.0
URL_VARIABLE = "TXBATCH_REDIS_URL"


class RedisReader:
    """Reads state of one topology inside a Spark task; implements `StateReader`.

    Args:
        url: from `load_redis_url`; connections are kept per process, URL and slot.
        topology_id: a valid name.
        nonce: nonce of the reading run, which must not see changes by another run.
        shard_count: how many shards hold the topology's state.
        connection: used instead of the process's own (tests).
    """

    def __init__(
        self,
        url: str,
        topology_id: str,
        *,
        nonce: str,
        shard_count: int = 1,
        connection: RedisConnection | None = None,
    ) -> None:
        home = Keys(topology_id)
        holders = [home] if shard_count == 1 else [home.shard(number) for number in range(shard_count)]
        self._nonce = nonce
        self._holders = [(keys, connection or _process_connection(url, keys.control, os.getpid())) for keys in holders]

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> list[bytes | None]:
        """Returns the stored bytes of each field, all as of one transaction; b"1" for a member of a set.

        One call reads from the topology's slot, or one call from each shard that holds some of the fields.

        Raises:
            StaleReadError: the state is at a later txid, or another run owns it, so this attempt is no longer current.
            StateRefusedError: the key has another type, the topology is gone, or the server has returned to an
                earlier state.
            StateUnreachableError: no answer within ten seconds.
        """
        if len(self._holders) == 1:
            return self._read(0, name, kind, fields, as_of_txid)
        places: dict[int, list[int]] = {}
        for place, field in enumerate(fields):
            places.setdefault(shard_of(name, kind, field, len(self._holders)), []).append(place)
        found: list[bytes | None] = [None] * len(fields)
        for number, own in places.items():
            values = self._read(number, name, kind, [fields[place] for place in own], as_of_txid)
            for place, value in zip(own, values, strict=True):
                found[place] = value
        return found

    def _read(
        self, number: int, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int
    ) -> list[bytes | None]:
        keys, connection = self._holders[number]
        names = [str(field) if isinstance(field, int) else field for field in fields]
        key = keys.state(name)
        reply = connection.function("read", "2", keys.control, key, kind.value, *names, read_only=True)
        committed_txid, is_own = int(reply[0]), f":{self._nonce}-".encode() in reply[1]
        if is_own and committed_txid < as_of_txid:
            raise StateRefusedError(
                f"state {key!r} is at txid {committed_txid}, expected {as_of_txid}: the server has returned to an "
                "earlier state; this run stops; run again to continue from what the server holds now"
            ).about(Trouble.REGRESSED)
        if not is_own or committed_txid != as_of_txid:
            raise StaleReadError(key, as_of_txid, committed_txid)
        return list(reply[2:])


def load_redis_url(path: str | None) -> str:
    """Returns the server's URL on an executor: from the file that the driver wrote, else from the environment."""
    file = Path(path) if path else None
    if file is not None and file.exists():
        if file.stat().st_mode & 0o077:
            raise StateRefusedError(
                f"file {str(file)!r} with the redis url is open to other users; chmod 600 it"
            ).about(Trouble.SERVER_ADDRESS)
        return file.read_text(encoding="utf-8").strip()
    url = from_environment(URL_VARIABLE)
    if not url:
        given = f"file {path!r} is not on this host" if path else "no file was named"
        raise StateRefusedError(
            f"redis url is unknown here: {given} and {URL_VARIABLE} is not set; set it on every executor"
        ).about(Trouble.SERVER_ADDRESS)
    try:
        require_encryption(url)
    except TopologyError as error:
        raise StateRefusedError(f"{URL_VARIABLE} of this executor: {error}").about(Trouble.SERVER_ADDRESS) from error
    return url


def save_redis_url(url: str, directory: str | Path) -> str:
    """Writes the URL to a file that only this user can read, and returns its path; called by the driver."""
    path = Path(directory) / "redis_url"
    temporary = path.with_name(f".redis_url.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    temporary.write_text(url, encoding="utf-8")
    temporary.replace(path)
    return str(path)


@lru_cache(maxsize=SHARDS_MAX + 8)
def _process_connection(url: str, key: str, _process_id: int) -> RedisConnection:
    """One connection per process: a forked worker must not share its parent's socket."""
    try:
        client = connect(url, key=key)
    except TopologyError as error:
        raise StateRefusedError(f"an executor cannot reach the state: {error}").about(
            Trouble.SERVER_UNREACHABLE
        ) from error
    return RedisConnection(client, redact(url), timeout_s=READ_TIMEOUT_S)
