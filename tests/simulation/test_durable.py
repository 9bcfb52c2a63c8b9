"""At a level that waits nothing that was released upstream is ever lost, whatever else goes wrong."""

from __future__ import annotations

import os
from unittest import mock

import pytest

from coordinator.transactional.machine.releases import Releases
from state.redis_owner.store import RedisStore
from tests.simulation.durable import SimOwnConnection, play, released_at_once
from tests.support.scenarios.planted import is_found

SEEDS = int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60"))
KINDS = ("told cut", "told partitioned", "told opaque")
LOSING = {"server.goes_back": 0.1, "driver.is_killed": 0.03, "server.loses_answer": 0.05}
LOOK_FOR = 60
"""A planted bug has to be found within this many seeds."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("level", ["fsync", "replica"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_released_upstream_is_never_lost_and_all_of_it_is_released(level, kind):
    barriers = 0
    for seed in range(max(1, SEEDS // 150)):
        try:
            simulation = play(seed, level, kind)
        except Exception as error:
            raise AssertionError(f"play({seed}, {level!r}, {kind!r}): {error}") from error
        barriers += simulation.server.replies["barrier", "OK"]
    assert barriers


# Planted bugs --------------------------------------------------------------------------------------------------


def connect_again(self):
    """A connection that broke is made again without a word, as redis-py would."""
    if self._life != self._server.lives:
        self._life, self._written = self._server.lives, None


def planted(target, name, bug):
    return mock.patch.object(target, name, bug)


PLANTED = {
    "released before it is confirmed": planted(Releases, "published", released_at_once),
    "a commit does not say how far the spout was told": planted(Releases, "notified_txid", None),
    "what an earlier run did not tell is not asked for": planted(RedisStore, "last_group", lambda self: ()),
    "the question is asked on another connection than the write": planted(SimOwnConnection, "_check", connect_again),
}


@pytest.mark.often("released before it is confirmed", "what an earlier run did not tell is not asked for")
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug):
    with PLANTED[bug]:
        assert is_found(lambda seed: play(seed, "replica", KINDS[seed % len(KINDS)], LOSING), range(LOOK_FOR))
