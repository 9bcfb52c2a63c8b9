"""Golden case G10: when a failed message is tried again, and which partitions a task reads."""

from __future__ import annotations

import pytest

from coordinator.plain.kafka.partition_set import partitions_of
from coordinator.plain.kafka.retry_manager import RetryManager, RetryRules
from state.errors import TopologyError

pytestmark = pytest.mark.case(id="G10")


def test_a_message_is_due_after_its_wait_and_not_before():
    retries = RetryManager(RetryRules(100, 1, 1000))
    assert retries.failed(7, 0)
    assert not retries.is_due(7, 5)
    assert retries.lowest_due(5) is None
    assert retries.is_due(7, 100)
    assert retries.lowest_due(100) == 7


def test_waits_grow_by_their_factor_up_to_the_longest():
    retries = RetryManager(RetryRules(10, 2, 100))
    now = 0
    waits = []
    for _ in range(6):
        retries.failed(1, now)
        wait = next(ms for ms in range(1, 1000) if retries.is_due(1, now + ms))
        waits.append(wait)
        now += wait
        retries.started(1)
    assert waits == [10, 20, 40, 80, 100, 100]


def test_what_is_cleared_is_not_next():
    retries = RetryManager(RetryRules(0, 1, 0, limit=None))
    for offset in (101, 102, 105):
        retries.failed(offset, 0)
    assert retries.clear_below(103) == [101, 102]
    assert retries.lowest_due(0) == 105


def test_after_its_limit_a_message_is_given_up():
    retries = RetryManager(RetryRules(0, 1, 0, limit=2))
    told = []
    for _ in range(3):
        told.append(retries.failed(1, 0))
        if told[-1]:
            retries.started(1)
    assert told == [True, True, False]


@pytest.mark.parametrize(
    ("partitions", "tasks", "counts"), [(16, 16, [1] * 16), (16, 8, [2] * 8), (32, 1, [32]), (1, 2, [1, 0])]
)
def test_partitions_are_spread_over_tasks(partitions, tasks, counts):
    shares = [partitions_of(task, tasks, partitions) for task in range(tasks)]
    assert [len(share) for share in shares] == counts
    assert sorted(each for share in shares for each in share) == list(range(partitions))


def test_a_task_that_is_not_there_reads_nothing_but_an_error():
    with pytest.raises(TopologyError, match="the component has 2 tasks"):
        partitions_of(2, 2, 16)


def test_many_retries_wait_no_longer_than_the_longest():
    assert RetryRules(100, 2, 60_000, None).wait_ms(5000) == 60_000


@pytest.mark.parametrize(
    "wrong", [{"initial_ms": -1}, {"initial_ms": 5, "max_ms": 4}, {"multiplier": 0.5}, {"limit": -1}]
)
def test_rules_that_make_no_sense_are_refused(wrong):
    with pytest.raises(TopologyError):
        RetryRules(**wrong)
