"""Golden case G11: what may be committed when messages are acked in any order, and what is tried again."""

from __future__ import annotations

import pytest

from coordinator.plain.kafka.partition_manager import AfterFail, OffsetManager, PartitionManager
from coordinator.plain.kafka.retry_manager import RetryRules

pytestmark = pytest.mark.case(id="G11")


def test_a_gap_nobody_emitted_is_skipped_one_that_is_open_stops():
    offsets = OffsetManager(0)
    for offset in (0, 1, 2, 5, 6):
        offsets.emitted(offset)
    for offset in (0, 1, 2, 6):
        offsets.acked(offset)
    assert offsets.next_commit_offset() == 3
    offsets.acked(5)
    assert offsets.next_commit_offset() == 7


def test_the_first_message_may_be_beyond_the_start():
    offsets = OffsetManager(0)
    offsets.emitted(5)
    offsets.emitted(6)
    offsets.acked(6)
    assert offsets.next_commit_offset() == 0
    offsets.acked(5)
    assert offsets.next_commit_offset() == 7


def test_emitted_in_any_order_an_open_one_stops():
    offsets = OffsetManager(0)
    offsets.emitted(2)
    offsets.acked(2)
    offsets.emitted(1)
    offsets.emitted(0)
    offsets.acked(0)
    assert offsets.next_commit_offset() == 1


def test_a_lower_one_that_was_never_emitted_does_not():
    offsets = OffsetManager(0)
    for offset in (2, 0):
        offsets.emitted(offset)
        offsets.acked(offset)
    assert offsets.next_commit_offset() == 3


def partition(count, limit):
    manager = PartitionManager(0, 0, RetryRules(0, 1, 0, limit), max_uncommitted=100)
    manager.fetched(0, list(range(count)), count, 0)
    return manager


def emitted(manager):
    """Emits what is waiting, fetching failed messages again; the ids."""
    start = manager.fetch_from(0)
    if start is not None and start < manager.emitted_to:
        manager.fetched(start, list(range(start, manager.emitted_to)), manager.emitted_to, 0)
    ids = []
    while (offset := manager.take()) is not None:
        ids += manager.emitting(offset, 1)
    return ids


def fail(manager, tuple_id):
    """Fails a tuple; one that is given up is skipped, as the policy may say."""
    after = manager.failed(tuple_id, 0)
    if after is AfterFail.GIVE_UP:
        manager.acked(tuple_id)
    return after


def test_without_retries_what_failed_is_done():
    manager = partition(4, limit=0)
    assert [fail(manager, each) for each in emitted(manager)] == [AfterFail.GIVE_UP] * 4
    assert manager.completed_to() == 4


def test_a_message_that_always_fails_is_emitted_once_and_for_each_retry():
    manager = partition(1, limit=3)
    rounds = 0
    while ids := emitted(manager):
        rounds += 1
        fail(manager, ids[0])
    assert rounds == 4
    assert manager.completed_to() == 1


def test_exactly_what_failed_is_emitted_again():
    manager = partition(10, limit=3)
    ids = {each.offset: each for each in emitted(manager)}
    for offset in (5, 3, 2):
        fail(manager, ids[offset])
    assert sorted(each.offset for each in emitted(manager)) == [2, 3, 5]
    assert emitted(manager) == []
