"""What a run drives of spouts with partitions: when the input ends, and what the user's coordinator is asked."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.spouts.opaque import OpaquePartitionedCoordinator
from coordinator.spouts.partition_coordinators import OpaqueCountCoordinator, PartitionCountCoordinator
from coordinator.spouts.partitioned import PartitionedCoordinator
from coordinator.spouts.transactional import SpoutCoordinator
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


class Two(PartitionedCoordinator):
    def __init__(self):
        self.partitions = 2

    def number_of_partitions(self):
        return self.partitions

    def is_ready(self):
        return self.partitions < 5

    def is_exhausted(self, number_of_transactions):
        return number_of_transactions == 3

    def close(self):
        self.partitions = 0


def test_to_the_coordinator_a_partitioned_spout_is_one_whose_metadata_is_the_partition_count():
    two = Two()
    source = PartitionCountCoordinator(two)
    assert source.is_ready()
    assert source.initialize_transaction(1, None) == 2
    two.partitions = 5
    assert not source.is_ready()
    assert source.initialize_transaction(2, 2) == 5
    assert not source.is_exhausted(5)
    two.partitions = 4
    assert source.is_ready()
    source.resume(3, 5)
    assert source.is_exhausted(5)
    assert not source.is_ready(), "what an earlier run has cut to its end is not gone on with"
    source.close()
    assert two.partitions == 0


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


# What the coordinator is asked


class Asked(OpaquePartitionedCoordinator):
    """Writes down what it is asked."""

    def __init__(self):
        self.log: list[Any] = []
        self.count: Any = 2
        self.is_ended = False

    def number_of_partitions(self):
        if isinstance(self.count, Exception):
            raise self.count
        return self.count

    def is_exhausted(self, positions, pending):
        self.log.append((positions, pending))
        return self.is_ended

    def progress(self, positions):
        return len(positions) / 4

    def activate(self):
        self.log.append("activate")

    def deactivate(self):
        self.log.append("deactivate")

    def close(self):
        self.log.append("close")


class Known:
    """Positions as the driver knows them."""

    def __init__(self, last_txid, **positions):
        self.last_txid, self.positions = last_txid, positions

    def last_positions(self):
        return self.positions

    def last_cut_number(self):
        return self.last_txid


def asked(last_txid=0, **positions):
    user = Asked()
    source, known = OpaqueCountCoordinator(user), Known(last_txid, **positions)
    source.follow(known)
    source.resume(last_txid, None)
    return user, source, known


def test_metadata_is_the_number_of_partitions_at_that_moment():
    user, source, _ = asked()
    assert source.initialize_transaction(1, None) == 2
    user.count = 5
    assert source.initialize_transaction(1, 2) == 5


def test_the_end_is_asked_with_positions_by_partition_and_how_many_transactions_are_not_in_them():
    user, source, known = asked(4, **{"partition.0": 40, "partition.12": 7})
    assert source.is_ready()
    source.initialize_transaction(5, None)
    source.initialize_transaction(6, None)
    assert source.is_ready()
    known.last_txid = 5
    user.is_ended = True
    assert not source.is_ready(), "an input that ends with what is under way is not gone on with"
    assert source.is_exhausted(None)
    positions = {0: 40, 12: 7}
    assert user.log == [(positions, 0), (positions, 2), (positions, 1), (positions, 1)]


def test_transactions_that_are_void_and_cannot_be_started_again_are_not_pending():
    """Else an input would be taken for ended although nobody reads the rest of it."""
    user, source, _ = asked(4)
    for txid in (5, 6, 7):
        source.initialize_transaction(txid, None)
    user.count = FailedException("the broker does not answer")
    with pytest.raises(FailedException):
        source.initialize_transaction(5, None)
    source.is_exhausted(None)
    assert user.log == [({}, 0)]


def test_everything_else_is_handed_on():
    user, source, _ = asked(1, **{"partition.0": 1})
    assert source.progress(None) == 0.25
    assert source.is_finite()
    source.activate()
    source.deactivate()
    source.close()
    assert user.log == ["activate", "deactivate", "close"]


class EndlessOpaque(OpaquePartitionedCoordinator):
    def number_of_partitions(self):
        return 1


def test_by_default_an_opaque_input_has_no_end_and_is_always_ready():
    source = OpaqueCountCoordinator(EndlessOpaque())
    source.follow(Known(0))
    assert (source.is_finite(), source.is_exhausted(None), source.is_ready()) == (False, False, True)
    assert source.progress(None) is None
    source.activate()
    source.deactivate()
    source.close()
