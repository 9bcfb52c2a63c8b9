"""Point reads of committed state from executors, where a topology lies in many slots."""

from __future__ import annotations

from collections.abc import Sequence

from state.keys import Keys
from state.redis_client.connection import RedisConnection
from state.redis_topology.reader import RedisReader
from state.values.shards import shard_of
from state.values.state_kind import Field, StateKind


class ShardedReader:
    """Reads state of one topology inside a Spark task; implements `StateReader` as `RedisReader` does.

    Args:
        shard_count: of the topology.
        connections: used instead of the process's own, one for each shard (tests).
    """

    def __init__(
        self,
        url: str,
        topology_id: str,
        *,
        nonce: str,
        shard_count: int,
        connections: Sequence[RedisConnection] | None = None,
    ) -> None:
        home = Keys(topology_id)
        self._readers = [
            RedisReader(
                url,
                topology_id,
                nonce=nonce,
                connection=None if connections is None else connections[number],
                keys=home.shard(number),
            )
            for number in range(shard_count)
        ]

    def read(self, name: str, kind: StateKind, fields: Sequence[Field], as_of_txid: int) -> list[bytes | None]:
        """Returns the stored bytes of each field; each shard is asked once, for its own, and all are at that txid."""
        places: dict[int, list[int]] = {}
        for place, field in enumerate(fields):
            places.setdefault(shard_of(name, kind, field, len(self._readers)), []).append(place)
        found: list[bytes | None] = [None] * len(fields)
        for number, own in places.items():
            values = self._readers[number].read(name, kind, [fields[place] for place in own], as_of_txid)
            for place, value in zip(own, values, strict=True):
                found[place] = value
        return found
