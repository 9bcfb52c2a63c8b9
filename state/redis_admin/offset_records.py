"""The offsets of a plain topology's spouts, in Redis; a plain topology has no transactions to store them with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from state.fault_points import reached
from state.keys import Keys
from state.redis_client.address import redact
from state.redis_client.connection import RedisConnection, connect

TIMEOUT_S = 60.0


class RedisOffsetRecords:
    """One hash of a topology; used by one spout task, on its thread.

    Nothing is fenced: two runs of one topology overwrite each other's records, and both process at least once.
    `client` is used instead of connecting to `url` (fakeredis in tests).
    """

    def __init__(self, url: str, topology_id: str, *, client: Any = None) -> None:
        self._key = Keys(topology_id).offsets
        server = "in memory" if client is not None else redact(url)
        made = connect(url, key=self._key) if client is None else client
        self._connection = RedisConnection(made, server, timeout_s=TIMEOUT_S)

    def load(self, field: str) -> str | None:
        found = self._connection.call("HGET", self._key, field)
        return None if found is None else bytes(found).decode("utf-8", "replace")

    def save(self, texts: Mapping[str, str]) -> None:
        """Replaces the records of partitions, all or none."""
        reached("offset.saving")
        self._connection.call("HSET", self._key, *chain.from_iterable(texts.items()))
        reached("offset.saved")

    def close(self) -> None:
        self._connection.close()
