"""A topology as those who do not own it handle it, over the connection of its owner."""

from __future__ import annotations

from state.records.topology_overview import TopologyOverview
from state.records.transaction_history import KnownTransaction
from state.redis_admin.topology import RedisTopology
from state.redis_owner.slot import RedisSlot


def admin_of(store: RedisSlot) -> RedisTopology:
    """Returns what looks at, imports or drops what a store owns."""
    connection = store.connection
    client = None if connection.follows else connection.client  # a client that follows does so to one slot
    return RedisTopology(store.server, store.keys.topology_id, client=client)


def overview_of(store: RedisSlot) -> TopologyOverview:
    """Returns what is stored about a topology that is there."""
    found = admin_of(store).overview()
    assert found is not None
    return found


def transaction_of(store: RedisSlot, txid: int) -> KnownTransaction:
    """Returns what is known of a transaction of a topology that is there."""
    found = admin_of(store).transaction(txid)
    assert found is not None
    return found
