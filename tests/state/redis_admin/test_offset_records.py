"""Offsets of plain spouts are kept by topology and partition, and dropped with their topology."""

from __future__ import annotations

from state.redis_admin.offset_records import RedisOffsetRecords


def test_a_record_is_what_was_saved_last_for_that_partition(backend):
    records = RedisOffsetRecords("", "plain", client=backend.client())
    assert records.load("spout:orders:0") is None
    records.save({"spout:orders:0": "one"})
    records.save({"spout:orders:0": "two", "spout:orders:1": "other"})
    assert records.load("spout:orders:0") == "two"
    assert RedisOffsetRecords("", "another", client=backend.client()).load("spout:orders:0") is None


def test_records_are_among_the_keys_a_drop_of_the_topology_removes(backend):
    RedisOffsetRecords("", "plain", client=backend.client()).save({"spout:orders:0": "one"})
    assert backend.client().keys("{plain}:*") == [b"{plain}:txbatch:offsets"]
