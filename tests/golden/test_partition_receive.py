"""Golden case G9: what a partition gives, what may be stored, and what a log that was cut leaves of it."""

from __future__ import annotations

import pytest

from coordinator.plain.kafka.partition_manager import AfterFail, PartitionManager
from coordinator.plain.kafka.retry_manager import RetryRules

pytestmark = pytest.mark.case(id="G9")


class Partition:
    """A log of numbers, and a manager that reads it; r, a and f are the case's letters."""

    def __init__(self):
        self.low, self.high = 0, 100
        self.manager = PartitionManager(0, 0, RetryRules(0, 1, 0), max_uncommitted=50)
        self.ids = {}

    def r(self):
        """Receives one message: its offset, None if there is nothing this time."""
        offset = self.manager.take()
        if offset is None and (start := self.manager.fetch_from(0)) is not None:
            if start < self.low:
                self.manager.reset(self.low)
                return None
            self.manager.fetched(start, list(range(start, min(start + 1, self.high))), min(start + 1, self.high), 0)
            offset = self.manager.take()
        if offset is not None:
            (self.ids[offset],) = self.manager.emitting(offset, 1)
        return offset

    def a(self, offset):
        self.manager.acked(self.ids[offset])

    def f(self, offset):
        assert self.manager.failed(self.ids[offset], 0) is AfterFail.RETRY

    def checkpoint(self):
        completed = self.manager.completed_to()
        self.manager.committed(completed)
        return completed


def test_receives_in_order_whatever_is_acked_between():
    part = Partition()
    assert [part.r(), part.r(), part.r()] == [0, 1, 2]
    for offset in (0, 1, 2):
        part.a(offset)
    assert part.r() == 3


def test_a_checkpoint_is_the_lowest_message_that_is_not_acked():
    part = Partition()
    assert [part.r(), part.r(), part.r()] == [0, 1, 2]
    assert part.checkpoint() == 0
    part.a(0)
    part.a(2)
    assert part.checkpoint() == 1


def test_what_failed_holds_the_checkpoint_also_once_it_is_received_again():
    part = Partition()
    assert [part.r(), part.r(), part.r()] == [0, 1, 2]
    part.f(2)
    part.f(1)
    assert part.checkpoint() == 0
    part.a(0)
    assert part.r() == 1
    assert part.checkpoint() == 1


def test_out_of_range_gives_nothing_once_then_only_what_is_new():
    part = Partition()
    part.high = 5
    assert [part.r() for _ in range(5)] == [0, 1, 2, 3, 4]
    part.checkpoint()
    for offset in range(5):
        part.f(offset)
    part.low, part.high = 5, 6
    assert part.r() is None
    assert part.r() == 5
    assert part.r() is None
    part.a(5)
    assert part.checkpoint() == 6
