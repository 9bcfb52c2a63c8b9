"""A start finds every hole in stored metadata by itself, whatever the checksum over it says."""

from __future__ import annotations

import pytest

from coordinator.spouts.partition_cut import partition_scope
from coordinator.transactional.start.input_checks import check_coordinator_metadata, check_partition_metadata
from state.errors import StateRefusedError


@pytest.mark.parametrize(
    ("committed_txid", "txids"),
    [(0, []), (0, [1, 2, 3]), (4, [4]), (4, [4, 5, 6])],
    ids=["nothing", "nothing committed", "nothing ahead", "three"],
)
def test_metadata_without_a_hole_is_accepted(committed_txid, txids):
    check_coordinator_metadata("word_count", dict.fromkeys(txids, 2), committed_txid=committed_txid)
    partitions = {partition_scope(0): dict.fromkeys(txids), partition_scope(1): dict.fromkeys(txids)}
    check_partition_metadata("word_count", partitions, dict.fromkeys(txids, 2), committed_txid=committed_txid)


@pytest.mark.parametrize(
    ("committed_txid", "txids", "missing"),
    [(0, [2], 1), (0, [1, 3], 2), (4, [5, 6], 4), (4, [4, 6, 7], 5), (4, [3, 6], 4)],
)
def test_a_hole_is_named_with_how_far_the_topology_is(committed_txid, txids, missing):
    story = rf"committed up to txid {committed_txid} .* up to txid {max(txids)}, but the metadata of txid {missing} is"
    with pytest.raises(StateRefusedError, match=story):
        check_coordinator_metadata("word_count", dict.fromkeys(txids, 2), committed_txid=committed_txid)


@pytest.mark.parametrize(
    ("first", "second", "story"),
    [
        ([4, 5], [4], "position of partition 1 in txid 5"),
        ([5], [4, 5], "position of partition 0 in txid 4"),
        ([4, 6], [4, 5, 6], "position of partition 0 in txid 5"),
    ],
)
def test_a_partition_that_lacks_a_position_is_named(first, second, story):
    partitions = {partition_scope(0): dict.fromkeys(first), partition_scope(1): dict.fromkeys(second)}
    with pytest.raises(StateRefusedError, match=story):
        check_partition_metadata("word_count", partitions, dict.fromkeys(range(4, 8), 2), committed_txid=4)


def test_a_partition_that_was_not_cut_yet_has_no_hole():
    counts = {4: 1, 5: 2, 6: 2}
    partitions = {partition_scope(0): {4: None, 5: None}, partition_scope(1): {5: None}}
    check_partition_metadata("word_count", partitions, counts, committed_txid=4)
