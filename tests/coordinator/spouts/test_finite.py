"""A source that can tell its end is finite; a drain before that end is an interruption."""

from __future__ import annotations

import pytest

from coordinator.spouts.partition_coordinators import PartitionCountCoordinator
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.transactional import SpoutCoordinator


class Endless(SpoutCoordinator):
    def is_ready(self):
        return True

    def initialize_transaction(self, txid, previous):
        return txid


class Finite(Endless):
    def is_exhausted(self, last):
        return last == 3


class EndlessPartitions(PartitionedCoordinator):
    def number_of_partitions(self):
        return 2


class FinitePartitions(EndlessPartitions):
    def is_exhausted(self, number_of_transactions):
        return number_of_transactions == 3

    def progress(self, number_of_transactions):
        return number_of_transactions / 3


@pytest.mark.parametrize(
    ("coordinator", "is_finite"),
    [
        (Endless(), False),
        (Finite(), True),
        (PartitionCountCoordinator(EndlessPartitions()), False),
        (PartitionCountCoordinator(FinitePartitions()), True),
    ],
)
def test_who_knows_of_an_end_is_finite(coordinator, is_finite):
    assert coordinator.is_finite() is is_finite


def test_progress_is_unknown_unless_the_source_tells_it():
    assert Endless().progress(None) is None
    assert PartitionCountCoordinator(EndlessPartitions()).progress(None) is None

    partitioned = PartitionCountCoordinator(FinitePartitions())
    partitioned.resume(1, 2)
    assert partitioned.progress(2) == pytest.approx(1 / 3)
