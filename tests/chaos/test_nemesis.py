"""The nemesis in small: what ``make chaos`` does for minutes, in seconds; and bugs that it has to find.

More by the environment: TXBATCH_CHAOS_KILLS, TXBATCH_CHAOS_CUTS, TXBATCH_CHAOS_SEED; at length by ``make chaos``.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from state.redis_server.program import find_server_program
from tests.support.chaos.nemesis.arenas import (
    SHORT_SOCKET_TIMEOUT_S,
    Arena,
    ClusterArena,
    MissingError,
    SparkArena,
    opened,
)
from tests.support.chaos.nemesis.campaign import Campaign
from tests.support.chaos.nemesis.history import CHECKER
from tests.support.chaos.nemesis.record import Record
from tests.support.chaos.nemesis.spark_strikes import kill_java, kill_worker
from tests.support.chaos.nemesis.strikes import ServerStrikes, kill_driver, raise_zombie

KILLS = int(os.environ.get("TXBATCH_CHAOS_KILLS", "20"))
CUTS = int(os.environ.get("TXBATCH_CHAOS_CUTS", "10"))
SEED = int(os.environ.get("TXBATCH_CHAOS_SEED", "1"))
BUG_BATTLES_MAX = 6
CUT = "append-only file cut"

pytestmark = [pytest.mark.chaos, pytest.mark.redis, pytest.mark.timeout(300 + 20 * (KILLS + CUTS))]


def assert_nothing_suffered(record: Record, arena: Arena) -> None:
    assert record.sentences == []
    assert arena.left == []
    assert record.totals["transactions"]
    assert record.totals["states seen by them"] > record.totals["topologies"], "somebody looked on"


@pytest.mark.nightly
def test_no_transaction_suffers_from_kills_cuts_restored_copies_and_zombies():
    record = Record()
    with opened("process", find_server_program()) as arena:
        server = ServerStrikes(arena.server)
        only = [kill_driver, server.cut, server.cut, server.restore, raise_zombie]
        campaign = Campaign(arena, Random(SEED), record, only=only)
        campaign.play_each()
        for _ in range(KILLS + CUTS):
            if record.kills < KILLS or record.strikes[CUT] < CUTS:
                campaign.play(8)
    assert_nothing_suffered(record, arena)
    assert record.kills >= KILLS
    assert record.strikes[CUT] >= CUTS
    assert record.strikes["older copy restored"]
    assert record.points, "some drivers died at a fault point"


@pytest.mark.nightly
@pytest.mark.parametrize("strike", ["promote", "fall_silent"])
def test_no_transaction_suffers_from_a_network_that_is_silent(strike):
    record = Record()
    with opened("failover", find_server_program()) as arena:
        only = [known for known in arena.strikes if known.__name__ == strike]
        Campaign(arena, Random(SEED), record, only=only).play(2)
    assert_nothing_suffered(record, arena)


@pytest.mark.nightly
def test_no_transaction_suffers_from_a_full_disk():
    record = Record()
    try:
        with opened("disk", find_server_program()) as arena:
            Campaign(arena, Random(SEED), record).play_each()
    except MissingError as error:
        pytest.skip(str(error))
    assert_nothing_suffered(record, arena)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.slow
def test_no_transaction_suffers_when_processes_of_spark_are_killed():
    record = Record()
    with opened(SparkArena.name, find_server_program()) as arena:
        campaign = Campaign(arena, Random(SEED), record, only=[kill_worker, kill_java, kill_driver])
        campaign.play_each()
    assert_nothing_suffered(record, arena)
    assert record.kills >= 2


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.nightly
def test_no_transaction_suffers_when_executors_of_a_cluster_are_killed():
    record = Record()
    with opened(ClusterArena.name, find_server_program()) as arena:
        kills = [strike for strike in arena.strikes if strike.__name__ in ("kill_mid_wave", "kill_between_jobs")]
        Campaign(arena, Random(SEED), record, only=kills).play_each()
    assert_nothing_suffered(record, arena)
    assert record.strikes["kill -9 of an executor between the two jobs of a wave"]


STRIKES_THAT_SHOW = {
    "no fence": lambda arena: [raise_zombie],
    "no witness": lambda arena: [ServerStrikes(arena.server).restore],
    "retried increment": lambda arena: [ServerStrikes(arena.server).freeze],
    "two-step commit": lambda arena: [kill_driver],
}


SHOWING = {"lost or doubled", "torn", "ending", "receipts"}
"""A planted bug shows in what is stored, or because the next driver refuses to continue from what is stored."""
SHOWN_UNDISTURBED = {"torn", "not linearizable"}
"""What a reader sees of a bug that tears every commit."""


@pytest.mark.parametrize("bug", STRIKES_THAT_SHOW)
def test_a_planted_bug_brings_an_undisturbed_run_to_its_end(bug, monkeypatch):
    """A bug that ends by an error of its own would be found by anything."""
    record = Record()
    with opened("process", find_server_program()) as arena:
        monkeypatch.setattr(arena, "next_fate", lambda battle: None)
        battle = Campaign(arena, Random(SEED), record, bug=bug).begin()
        try:
            battle.await_progress()
            battle.close_input()
            battle.finish()
        finally:
            battle.close()
    assert record.endings["done"], record.sentences
    assert set(record.complaints) <= SHOWN_UNDISTURBED, record.sentences


@pytest.mark.nightly
@pytest.mark.parametrize("bug", STRIKES_THAT_SHOW)
def test_a_planted_bug_is_found_by_the_verifier_and_by_the_checker_of_histories(bug):
    record = Record()
    wanted = [SHOWING, {"not linearizable"}] if CHECKER.exists() else [SHOWING]
    with opened("process", find_server_program()) as arena:
        arena.socket_timeouts_s = (SHORT_SOCKET_TIMEOUT_S,)
        campaign = Campaign(arena, Random(SEED), record, only=STRIKES_THAT_SHOW[bug](arena), bug=bug)
        for _ in range(BUG_BATTLES_MAX):
            campaign.play(arena.strikes_a_battle)
            if all(kinds & set(record.complaints) for kinds in wanted):
                break
    assert all(kinds & set(record.complaints) for kinds in wanted), record.sentences
