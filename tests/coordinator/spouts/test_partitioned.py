"""What the coordinator of a spout with partitions knows and is asked: positions, how much is ahead, the end."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator import PartitionedCoordinator, RunSoFar, SpoutCommitter, SpoutCoordinator
from coordinator.transactional.run_spout import RunSpout
from coordinator.transactional.spout_calls import SpoutCalls
from coordinator.transactional.spout_notifier import SpoutNotifier
from state import FailedException, TransactionAttempt


class Asked(PartitionedCoordinator):
    """Writes down what it knows when it is asked."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.count: Any = 2
        self.is_ended = False

    def number_of_partitions(self):
        if isinstance(self.count, Exception):
            raise self.count
        return self.count

    def is_exhausted(self):
        self.log.append((dict(self.run_so_far.positions), self.run_so_far.ahead))
        return self.is_ended

    def progress(self):
        return len(self.run_so_far.positions) / 4


class Known:
    """Positions as the driver knows them."""

    def __init__(self, last_txid, **positions):
        self.last_txid, self.positions = last_txid, positions

    def last_positions(self):
        return self.positions

    def last_cut_number(self):
        return self.last_txid

    def committed_number(self):
        return 0

    def number_of(self, txid):
        return txid


CALLS = SpoutCalls("log", tries=1, pause=lambda seconds: None)


def guarded(user: PartitionedCoordinator, last_txid: int = 0, **positions: Any) -> tuple[RunSpout, Known]:
    made = RunSpout(user, CALLS, lambda: 0.0, RunSoFar(last_txid), has_partitions=True)
    made.how_far = known = Known(last_txid, **positions)
    return made, known


def test_metadata_is_the_number_of_partitions_at_that_moment():
    user = Asked()
    source, _ = guarded(user)
    assert source.initialize_transaction(1, None) == 2
    user.count = 5
    assert source.initialize_transaction(2, 2) == 5


def test_the_end_is_asked_with_positions_by_partition_and_how_many_transactions_are_ahead_of_them():
    user = Asked()
    source, known = guarded(user, 4, **{"partition.0": 40, "partition.12": 7})
    assert source.is_ready()
    source.initialize_transaction(5, None)
    source.initialize_transaction(6, None)
    assert source.is_ready()
    known.last_txid = 5
    user.is_ended = True
    assert not source.is_ready(), "an input that ends with what is under way gets no new transaction"
    assert source.is_exhausted()
    positions = {0: 40, 12: 7}
    assert user.log == [(positions, 0), (positions, 2), (positions, 1), (positions, 1)]


def test_transactions_that_are_void_and_cannot_be_started_again_are_not_ahead():
    """Else an input would be taken for ended although nobody reads the rest of it."""
    user = Asked()
    source, _ = guarded(user, 4)
    for txid in (5, 6, 7):
        source.initialize_transaction(txid, None)
    user.count = FailedException("the broker does not answer")
    with pytest.raises(FailedException):
        source.initialize_transaction(5, None)
    source.is_exhausted()
    assert user.log == [({}, 0)]


class One(PartitionedCoordinator):
    """One transaction, judged by how many were started; the first question for the number of partitions fails."""

    def __init__(self) -> None:
        self.failures = [FailedException("not now")]

    def number_of_partitions(self):
        if self.failures:
            raise self.failures.pop()
        return 3

    def is_exhausted(self):
        return self.run_so_far.last_txid >= 1


def test_a_transaction_whose_partitions_could_not_be_counted_is_still_to_come_and_one_of_an_earlier_run_is_not():
    assert not guarded(One(), 1)[0].is_ready()
    source, _ = guarded(One())
    with pytest.raises(FailedException):
        source.initialize_transaction(1, None)
    assert not source.is_exhausted()
    assert source.is_ready()
    assert source.initialize_transaction(1, None) == 3
    assert source.is_exhausted()
    assert not source.is_ready()


def test_a_spout_may_change_what_it_is_given_without_moving_a_position():
    user = Asked()
    source, known = guarded(user, 1, **{"partition.0": ["a", 1]})
    source.informed().run_so_far.positions[0].append("changed")
    assert known.positions == {"partition.0": ["a", 1]}
    assert source.informed().run_so_far.positions == {0: ["a", 1]}


class Endless(SpoutCoordinator):
    def is_ready(self):
        return True

    def initialize_transaction(self, txid, previous):
        return txid


class Finite(Endless):
    def is_exhausted(self):
        return self.run_so_far.last == 3


class EndlessPartitions(PartitionedCoordinator):
    def number_of_partitions(self):
        return 2


@pytest.mark.parametrize(
    ("coordinator", "is_finite"), [(Endless(), False), (Finite(), True), (EndlessPartitions(), False), (Asked(), True)]
)
def test_who_knows_of_an_end_is_finite(coordinator, is_finite):
    assert coordinator.is_finite() is is_finite


def test_progress_is_unknown_unless_the_source_tells_it():
    assert Endless().progress() is None
    assert guarded(EndlessPartitions())[0].progress() is None
    assert guarded(Asked(), 1, **{"partition.0": 1})[0].progress() == 0.25


def test_by_default_an_input_with_partitions_has_no_end_and_is_always_ready():
    source, _ = guarded(EndlessPartitions())
    assert (source.is_finite(), source.is_exhausted(), source.is_ready()) == (False, False, True)


class Looks(SpoutCommitter):
    """Reads what the coordinator knows, as the one that trims streams does."""

    def __init__(self, user: Asked) -> None:
        self.user, self.seen = user, list[Any]()

    def commit(self, attempt):
        self.seen.append(dict(self.user.run_so_far.positions))


def test_a_committer_finds_positions_as_they_are_when_it_is_told():
    user = Asked()
    source, known = guarded(user)
    assert source.is_ready()
    known.positions = {"partition.0": 40}
    looks = Looks(user)
    notifier = SpoutNotifier(looks, CALLS, inform=source.informed, batch_number=lambda txid: txid)
    assert notifier.notify((TransactionAttempt(1, 1),)).error is None
    assert looks.seen == [{0: 40}]
