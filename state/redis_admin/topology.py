"""A topology in one slot or many, used without owning it: to look, export, import and drop."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from state.commits.quarantine import QuarantineRecord
from state.errors import StateRefusedError
from state.keys import Keys
from state.records.declared_states import DescribedState, shard_count_of
from state.records.topology_overview import ListedTopology, TopologyOverview
from state.records.transaction_history import KnownTransaction
from state.redis_admin.all_records import RedisRecords, known_to_shards
from state.redis_admin.drop import Dropped, drop_topology
from state.redis_admin.importing import RedisImport, StateImport
from state.redis_admin.sharded_import import SHARDS_LEFT, ShardedImport
from state.redis_admin.sharded_records import ShardedRecords
from state.redis_admin.topology_reader import TopologyReader
from state.redis_client.connection import RedisConnection, connect, text_of
from state.redis_client.presence import connected_runs
from state.redis_owner.letter_pages import RedisDeadLetters
from state.redis_owner.slot import RedisSlot


class RedisTopology(RedisSlot):
    """One topology on its servers, for anyone to read or remove; constructed like a `RedisSlot`.

    The stored description gives the number of slots.
    """

    def __init__(self, url: str, topology_id: str, **options: Any) -> None:
        super().__init__(url, topology_id, **options)

        def connected(key: str) -> Any:  # a function, so that no displayed attribute holds the password
            return connect(url, key=key)

        self._connect = connected
        self._shard_connections: list[RedisConnection] = []

    def overview(self, *, with_samples: bool = False) -> TopologyOverview | None:
        """Returns the stored facts about the topology and its run's pulse, or None; see `TopologyReader.overview`."""
        return TopologyReader(self._connection).overview(self.keys.topology_id, with_samples=with_samples)

    @property
    def dead_letters(self) -> RedisDeadLetters:
        return RedisDeadLetters(self._connection, self.keys)

    def empty(self, states: Iterable[DescribedState]) -> None:
        """Deletes the content of states; only for a topology that nobody else uses, such as a refold's."""
        for name in (name for state in states for name in self.records().names_of(state)):
            self._connection.call("UNLINK", self.keys.state(name))

    def discard(self, record: QuarantineRecord) -> bool:
        """Removes a quarantined batch for good, in one step; called for an operator, at any time, by any process.

        A run that republishes the batch meanwhile has either published it already, or finds the record gone and
        publishes nothing. Returns whether this call has removed exactly that record.
        """
        txid, packed = str(record.txid), record.packed()
        return text_of(self._connection.function("discard", "1", self.keys.quarantine, txid, packed)[0]) == "OK"

    def transaction(self, txid: int) -> KnownTransaction | None:
        """Returns the record of a transaction, None if the topology is not stored."""
        return TopologyReader(self._connection).transaction(self.keys.topology_id, txid)

    def connected_runs(self) -> int:
        """Returns how many runs of the topology are connected, 0 if the server does not report it."""
        return connected_runs(self._connection, self.keys)

    def all_topologies(self) -> list[ListedTopology]:
        """Returns every topology on the same server, by id."""
        return TopologyReader(self._connection).topologies()

    def records(self) -> RedisRecords:
        """Returns a reader of all stored data that needs no function library; for `verify` and `state`."""
        home = self._home_records()
        return home if home.shard_count() == 1 else ShardedRecords(home, self._connections_of)

    def _home_records(self) -> RedisRecords:
        return RedisRecords(self._connection, self.keys)

    def importer(self, shard_count: int = 1) -> StateImport:
        """Returns a new import of exported state, spread over this many shards."""
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
        """Returns how many shards may hold data of the topology: its current shards, or those before an import."""
        home = self._home_records()
        count = home.shard_count()
        if count == 1:
            count = shard_count_of(known_to_shards(home, lambda _: self._connections_of(1)[0]))
        with suppress(StateRefusedError):  # the record is damaged; a drop need not care
            return max(
                count if count > 1 else 0, int(self._connection.call("HGET", self.keys.control, SHARDS_LEFT) or 0)
            )
        return 0

    def drop(self, also: Iterable[str] = (), shard_count: int = 0) -> Dropped:
        """Deletes every key that the topology owns, and the states named by `also`, even if no record declares them.

        It fences a running coordinator first and deletes the control key last, so nothing of the topology can reappear.
        After an interruption, the topology is unusable until it is dropped again. A FencedError means that other
        coordinators keep taking over at the same time. `shard_count` is the number of shards, in case home has no
        record of it.
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
        return self.another_connection(client)
