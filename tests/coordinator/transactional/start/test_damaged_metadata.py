"""Stored metadata that somebody has damaged: the start is refused with the field's name and what to do."""

from __future__ import annotations

from itertools import product

import pytest

from coordinator.spouts.memory import FixedBatchesSpout, MemoryTransactionalSpout, OpaqueMemoryTransactionalSpout
from state.codec import pack
from state.errors import StateError, TransactionError
from state.keys import Keys
from state.metadata import MetadataSum
from tests.support.topologies.components import Count, build

ROWS = [["a", n] for n in range(6)]
FIELDS = ["line", "number"]
SPOUTS = {
    "fixed": FixedBatchesSpout([[row] for row in ROWS], FIELDS),
    "partitioned": MemoryTransactionalSpout([ROWS, ROWS], FIELDS, take=1),
    "opaque": OpaqueMemoryTransactionalSpout([ROWS, ROWS], FIELDS, take=1),
}
KEYS = Keys("test")


def half_done(cluster, spout):
    """Three transactions are committed; returns the topology and the names of what is stored."""
    topology = build(("count", Count(), ["lines"]), spout=SPOUTS[spout])
    run = cluster.submit(topology)
    while run.statistics.committed < 3:
        run.tick()
    run.close()
    return topology, sorted(field.decode() for field in cluster.client.hkeys(KEYS.metadata))


def vouch_for_it(cluster):
    """Makes the checksum that of what is stored now."""
    stored = {field.decode(): value for field, value in cluster.client.hgetall(KEYS.metadata).items()}
    cluster.client.hset(KEYS.control, "metadata_sum", str(MetadataSum(stored)))


def assert_refused(cluster, topology, names, error=StateError, said="topology 'test' cannot start"):
    """The start is refused with this sentence, with what is damaged, and with what to do."""
    with pytest.raises(error, match=said) as refused:
        cluster.submit(topology)
    assert names in str(refused.value)
    assert "`txbatch drop test`" in str(refused.value)


@pytest.mark.parametrize("spout", SPOUTS)
@pytest.mark.parametrize("has_sum", [True, False])
@pytest.mark.parametrize("damage", [b"", b"\xc1", b"plain text", b"\xff\xff", pack([1, 2])[:-1], pack({"a": 1}) + b"x"])
def test_an_entry_that_cannot_be_read_is_named(cluster, spout, damage, has_sum):
    topology, fields = half_done(cluster, spout)
    cluster.client.hset(KEYS.metadata, fields[-1], damage)
    if has_sum:
        vouch_for_it(cluster)
    assert_refused(cluster, topology, f"metadata field '{fields[-1]}'")


ODD = ["coordinator", "coordinator:x", ":3", "coordinator:-1", "coordinator:1:", "", "a:1.5"]
NO_SCOPE = ["partition.x:3", "partition.-1:3", "shard.1:3", "partition.:3", "partition.0.1:3"]


@pytest.mark.parametrize("spout", SPOUTS)
@pytest.mark.parametrize(("name", "has_sum"), [*product(ODD, [True, False]), *product(NO_SCOPE, [True])])
def test_an_entry_with_a_name_or_of_a_scope_that_is_none_of_ours_is_named(cluster, spout, name, has_sum):
    topology, _ = half_done(cluster, spout)
    cluster.client.hset(KEYS.metadata, name, pack(1))
    if has_sum:
        vouch_for_it(cluster)
    said = "topology 'test' cannot start" if name in ODD else None
    assert_refused(cluster, topology, f"metadata field '{name}'", said=said)


@pytest.mark.parametrize("count", [None, "2", -1, 2.0, True, [2], {"partitions": 2}])
def test_a_number_of_partitions_that_is_none_is_named(cluster, count):
    topology, fields = half_done(cluster, "partitioned")
    field = next(field for field in reversed(fields) if field.startswith("coordinator"))
    cluster.client.hset(KEYS.metadata, field, pack(count))
    vouch_for_it(cluster)
    assert_refused(cluster, topology, f"metadata field '{field}'", said=None)


@pytest.mark.parametrize("spout", SPOUTS)
@pytest.mark.parametrize("field", ["committed", "revision"])
@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "1e3", "01"])
def test_a_number_of_the_control_hash_that_is_none_is_named(cluster, spout, field, text):
    topology, _ = half_done(cluster, spout)
    cluster.client.hset(KEYS.control, field, text)
    names = f"field '{field}' of key '{KEYS.control}'"
    assert_refused(cluster, topology, names, said="topology 'test' cannot be used")


@pytest.mark.parametrize("key", [KEYS.control, KEYS.metadata, KEYS.receipts])
def test_a_key_of_another_type_is_named(cluster, key):
    topology, _ = half_done(cluster, "fixed")
    cluster.client.delete(key)
    cluster.client.set(key, "text")
    assert_refused(cluster, topology, f"key '{key}' is a string", TransactionError, said=None)
