"""What partitioned and opaque spouts share on the driver."""

from __future__ import annotations

import pytest

from coordinator.spouts.partition_coordinators import PartitionCountCoordinator
from coordinator.spouts.partitioned import PartitionedCoordinator
from state.errors import FailedException


class Unreachable(PartitionedCoordinator):
    """One transaction; the first question for the number of partitions fails."""

    def __init__(self) -> None:
        self.failures = [FailedException("not now")]

    def number_of_partitions(self):
        if self.failures:
            raise self.failures.pop()
        return 3

    def is_exhausted(self, number_of_transactions):
        return number_of_transactions >= 1


def test_a_transaction_whose_partitions_could_not_be_counted_is_still_to_come():
    source = PartitionCountCoordinator(Unreachable())
    with pytest.raises(FailedException):
        source.initialize_transaction(1, None)
    assert not source.is_exhausted(None)
    assert source.is_ready()
    assert source.initialize_transaction(1, None) == 3
    assert source.is_exhausted(None)
