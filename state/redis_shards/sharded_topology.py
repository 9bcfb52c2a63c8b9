"""A topology in one slot or in many, used without owning it: its records, its import, its drop."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from state.errors import StateRefusedError
from state.keys import Keys
from state.records.declared_states import shard_count_of
from state.redis_client.connection import RedisConnection, connect
from state.redis_shards.sharded_import import SHARDS_LEFT, ShardedImport
from state.redis_shards.sharded_records import ShardedRecords
from state.redis_topology.all_records import RedisRecords, known_to_shards
from state.redis_topology.drop import Dropped, drop_topology
from state.redis_topology.importing import RedisImport, StateImport
from state.redis_topology.topology import RedisTopology


class ShardedTopology(RedisTopology):
    """One topology on its servers, as anyone may look at it or remove it; made like a `RedisTopology`.

    How many slots it has, it finds in what is stored.
    """

    def __init__(self, url: str, topology_id: str, **options: Any) -> None:
        super().__init__(url, topology_id, **options)

        def connected(key: str) -> Any:  # a function, so that nothing which is shown holds the password
            return connect(url, key=key)

        self._connect = connected
        self._shard_connections: list[RedisConnection] = []

    def records(self) -> RedisRecords:
        """Returns what reads everything that is stored, without the function library; for `verify` and `state`."""
        home = super().records()
        return home if home.shard_count() == 1 else ShardedRecords(home, self._connections_of)

    def importer(self, shard_count: int = 1) -> StateImport:  # type: ignore[override]  # one slot takes no number
        """Returns what puts exported state back, spread over this many shards."""
        wanted = shard_count if shard_count > 1 else 0
        had = self._shards_left()
        nonce = secrets.token_hex(16)
        home = RedisImport(self._connection, self.keys, nonce=nonce)
        if not wanted and not had:
            return home
        shards = list(enumerate(self._connections_of(max(had, wanted))))
        targets = [RedisImport(each, self.keys.shard(number), nonce=nonce) for number, each in shards[:wanted]]

        def drop_others() -> int:
            dropped = (drop_topology(each, self.keys.shard(number), nonce=nonce) for number, each in shards[wanted:had])
            return sum(each.deleted for each in dropped)

        return ShardedImport(home, targets, had, drop_others)

    def _shards_left(self) -> int:
        """Returns how many shards may hold anything of the topology: it has them, or had them before an import."""
        home = super().records()
        count = home.shard_count()
        if count == 1:
            count = shard_count_of(known_to_shards(home, lambda _: self._connections_of(1)[0]))
        with suppress(StateRefusedError):  # the record is damaged, which nobody has to know of in order to drop it
            return max(
                count if count > 1 else 0, int(self._connection.call("HGET", self.keys.control, SHARDS_LEFT) or 0)
            )
        return 0

    def drop(self, also: Iterable[str] = (), shard_count: int = 0) -> Dropped:
        """Deletes every key that the topology owns, in all of its slots; see `RedisTopology.drop`.

        `shard_count` is how many it had, where no record at home says so.
        """
        nonce, left = secrets.token_hex(16), max(self._shards_left(), shard_count)
        return drop_topology(
            self._connection,
            self.keys,
            nonce=nonce,
            also=also,
            shards=self._connections_of(left if left > 1 else 0),
        )

    def close(self) -> None:
        for connection in self._shard_connections:
            connection.close()
        super().close()

    def _connections_of(self, shard_count: int) -> list[RedisConnection]:
        """Returns a connection to each shard; `close` closes them."""
        missing = range(len(self._shard_connections), shard_count)
        self._shard_connections += [self._connected(self.keys.shard(number)) for number in missing]
        return self._shard_connections[:shard_count]

    def _connected(self, keys: Keys) -> RedisConnection:
        client = self._connection.client if self._is_injected else self._connect(keys.control)
        return RedisConnection(client, self.server, **self._call_options)
