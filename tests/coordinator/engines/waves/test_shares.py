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


PASS_AND_STORE = ("count", Pass(), ["lines"]), ("store", Commit(), ["count"])
ONE_EACH = plan(build(*PASS_AND_STORE), is_chained=True).in_slots(SLOTS)
SMALL = SMALL_WAVE_BYTES // MANY
HALF_SPREAD = SPREAD_BYTES_MAX // 2


@pytest.mark.parametrize(
    ("count", "byte_count", "made", "shares"),
    [
        (MANY - 1, 0, None, 0),
        (1, SMALL, None, 1),
        (MANY - 1, SMALL, None, 1),
        (MANY, SMALL, None, 2),
        (1, LARGE, None, 0),
        (100, HALF_SPREAD, spread_plan(2), 2),
        (100, HALF_SPREAD, spread_plan(4), 0),
        (1, LARGE, ONE_EACH, 1),
        (MANY, LARGE, ONE_EACH, SLOTS),
        (100, 0, plan(build(("count", Pass(), ["lines"], 3))), 3),
    ],
    ids=[
        "few of unknown size",
        "a small wave",
        "a small wave of too few for all slots",
        "a small wave of enough for all slots",
        "one large attempt",
        "large attempts",
        "large attempts in shares that would change the same",
        "one task each",
        "one task each, and many attempts",
        "slots unknown: as many as the widest stage has tasks",
    ],
)
def test_a_wave_is_shuffled_or_has_so_many_shares(count, byte_count, made, shares):
    assert len(dealt(count, byte_count, made=made)) == shares


def test_committers_with_a_job_of_their_own_need_the_shuffle():
    wave = WaveInput(1, tuple(Batch(TransactionAttempt(txid, 1), b"") for txid in range(1, MANY + 1)))
    assert shares_of(spread_plan(), wave, EarlyCommit()) == ()


def test_partitions_are_read_in_order():
    made = plan(build(("count", Pass(), ["lines"], 4), spout=PartitionedSpout(""), spout_tasks=4)).in_slots(SLOTS)
    assert dealt(MANY, made=made) == ()
