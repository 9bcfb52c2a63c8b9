"""Servers that fail over, and slots that move, under an owner that commits: exact, and nobody has to help."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable

import pytest

from state.records.durability import DurabilityLevel
from state.redis_server.program import find_server_program
from tests.conftest import redis_program
from tests.support.stores.moved_run import KEY, Moved, MovedRun
from tests.support.stores.moving_servers import ClusteredServers, WatchedServers

pytestmark = [pytest.mark.nightly, pytest.mark.redis, pytest.mark.chaos]
MEMORY, REPLICA = DurabilityLevel.MEMORY, DurabilityLevel.REPLICA
TIMES = 20


def killed(program: str, level: DurabilityLevel) -> Moved:
    """A primary is killed, and sentinels promote a replica."""
    with WatchedServers(program) as servers:
        return MovedRun(servers.url, level, replicas=2).through(lambda: servers.fail_over(by_kill=True))


def relieved(program: str, level: DurabilityLevel) -> Moved:
    """Sentinels promote a replica of a primary that is well, and takes writes for a while yet."""
    with WatchedServers(program) as servers:
        return MovedRun(servers.url, level, replicas=2).through(lambda: servers.fail_over(by_kill=False))


def in_a_cluster(strike: Callable[[ClusteredServers], None]) -> Callable[[str, DurabilityLevel], Moved]:
    def run(program: str, level: DurabilityLevel) -> Moved:
        with ClusteredServers(program) as servers:
            return MovedRun(servers.url, level).through(lambda: strike(servers))

    return run


STRIKES = {
    "sentinels, primary killed": killed,
    "sentinels, SENTINEL FAILOVER": relieved,
    "cluster, primary killed": in_a_cluster(lambda servers: servers.fail_over(KEY, by_kill=True)),
    "cluster, CLUSTER FAILOVER": in_a_cluster(lambda servers: servers.fail_over(KEY, by_kill=False)),
    "cluster, slot moved": in_a_cluster(lambda servers: servers.move_slot(KEY, pause_s=0.1)),
}


def assert_exact(strike: str, found: Moved, level: DurabilityLevel) -> None:
    """Everything was counted once, as the run has checked; the rest is that it has moved, and what it may lose."""
    assert found.moves, strike
    assert found.committed
    if level is REPLICA:
        assert found.confirmed
    if strike in ("cluster, CLUSTER FAILOVER", "cluster, slot moved"):  # these lose nothing at any level
        assert not found.regressed


@pytest.mark.parametrize("strike", ["sentinels, primary killed", "sentinels, SENTINEL FAILOVER"])
def test_a_replica_takes_over_and_what_was_confirmed_is_there(strike):
    assert_exact(strike, STRIKES[strike](find_server_program(), REPLICA), REPLICA)


def test_a_slot_moves_and_its_nodes_fail_over_under_one_run():
    with ClusteredServers(redis_program()) as servers:
        found = MovedRun(servers.url, REPLICA).through(
            lambda: servers.move_slot(KEY, pause_s=0.1),
            lambda: servers.fail_over(KEY, by_kill=False),
            lambda: servers.fail_over(KEY, by_kill=True),
        )
    assert found.confirmed
    assert not found.lost
    assert found.moves >= 3


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("strike", STRIKES)
@pytest.mark.parametrize("level", [MEMORY, REPLICA], ids=str)
def test_twenty_times(strike, level, capsys):
    programs = itertools.cycle([find_server_program(), redis_program()])
    for time in range(TIMES // 2):
        found = STRIKES[strike](next(programs), level)
        with capsys.disabled():
            sys.stdout.write(f"{strike}, {level.value}, {time + 1}: {found}\n")
        assert_exact(strike, found, level)
