"""Which waves are dealt in shares, and in how many."""

from __future__ import annotations

import pytest

from coordinator.engines.waves.shares import LEAST_ATTEMPTS, SMALL_WAVE_BYTES, SPREAD_BYTES_MAX, Share, shares_of
from coordinator.engines.waves.stage import WaveInput
from coordinator.spouts.batch import Batch
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit
from state.attempt import TransactionAttempt
from tests.support.scenarios.transfer_spouts import PartitionedSpout
from tests.support.topologies.components import Commit, Pass, build, plan

SLOTS = 2
MANY = SLOTS * LEAST_ATTEMPTS
LARGE = SMALL_WAVE_BYTES + 1


def spread_plan(slots: int = SLOTS) -> Plan:
    bolts = ("count", Pass(), ["lines"], 4), ("store", Commit(), ["count"], 4)
    return plan(build(*bolts, spout_tasks=4)).in_slots(slots)


def dealt(count: int, byte_count: int = 0, *, made: Plan | None = None, group_size: int = 1_000) -> tuple[Share, ...]:
    attempts = [TransactionAttempt(txid, txid) for txid in range(1, count + 1)]
    batches = tuple(Batch(attempt, b"", byte_count=byte_count) for attempt in attempts)
    groups = tuple(tuple(attempts[first : first + group_size]) for first in range(0, count, group_size))
    return shares_of(made or spread_plan(), WaveInput(1, batches), EarlyCommit(groups))


def txids(shares: tuple[Share, ...]) -> list[list[list[int]]]:
    return [[[attempt.txid for attempt in group] for group in share.early.groups] for share in shares]


def test_a_wave_of_many_attempts_has_a_share_for_each_slot():
    shares = dealt(MANY + 1)
    assert [len(share.wave.batches) for share in shares] == [4, 5]
    assert txids(shares) == [[[1, 2, 3, 4]], [[5, 6, 7, 8, 9]]]


def test_groups_are_cut_where_shares_end():
    assert txids(dealt(MANY, group_size=3)) == [[[1, 2, 3], [4]], [[5, 6], [7, 8]]]


def test_few_attempts_of_unknown_size_are_shuffled():
    assert dealt(MANY - 1) == ()


@pytest.mark.parametrize(("count", "shares"), [(1, 1), (MANY - 1, 1), (MANY, 2)])
def test_a_small_wave_is_one_share_until_it_has_attempts_for_all_slots(count, shares):
    assert len(dealt(count, SMALL_WAVE_BYTES // MANY)) == shares


@pytest.mark.parametrize(("slots", "shares"), [(2, 2), (4, 0)])
def test_large_attempts_are_shuffled_where_many_shares_would_change_the_same(slots, shares):
    byte_count = SPREAD_BYTES_MAX // 2
    assert len(dealt(100, byte_count, made=spread_plan(slots))) == shares


def test_one_large_attempt_is_shuffled():
    assert dealt(1, LARGE) == ()


@pytest.mark.parametrize(("count", "shares"), [(1, 1), (MANY, SLOTS)])
def test_a_topology_of_one_task_each_uses_all_slots(count, shares):
    one_each = plan(build(("count", Pass(), ["lines"]), ("store", Commit(), ["count"])), is_chained=True)
    assert len(dealt(count, LARGE, made=one_each.in_slots(SLOTS))) == shares


def test_without_known_slots_there_are_as_many_shares_as_the_widest_stage_has_tasks():
    assert len(dealt(100, made=plan(build(("count", Pass(), ["lines"], 3))))) == 3


def test_committers_with_a_job_of_their_own_need_the_shuffle():
    wave = WaveInput(1, tuple(Batch(TransactionAttempt(txid, 1), b"") for txid in range(1, MANY + 1)))
    assert shares_of(spread_plan(), wave, EarlyCommit()) == ()


def test_partitions_are_read_in_order():
    made = plan(build(("count", Pass(), ["lines"], 4), spout=PartitionedSpout(""), spout_tasks=4)).in_slots(SLOTS)
    assert dealt(MANY, made=made) == ()
