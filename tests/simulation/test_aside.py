"""Poison, dead letters and levels together: nothing that is kept aside is lost, doubled or mixed up with the rest."""

from __future__ import annotations

import os
from functools import cache
from typing import Any
from unittest import mock

import pytest

from committers import group_commit
from coordinator.testing.simulated.timeline import SimulationStuckError
from coordinator.transactional.machine.releases import Releases
from state.commits.dead_letters import add_letters
from tests.simulation.aside import LEVELS, AsideSimulation
from tests.simulation.durable import released_at_once
from tests.simulation.poison import kind_of
from tests.simulation.scenario import Scenario
from tests.support.scenarios.planted import is_found

SEEDS = max(6, int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60")) // 60)
LOOK_FOR = 40
"""A planted bug has to be found within this many seeds."""


def play(seed: int, kind: str = "", level: str = "") -> AsideSimulation:
    simulation = AsideSimulation(Scenario.of(seed, kind or kind_of(seed)), level or LEVELS[seed % len(LEVELS)])
    simulation.play()
    return simulation


@cache
def played(seed: int) -> AsideSimulation:
    try:
        return play(seed)
    except (AssertionError, SimulationStuckError) as error:
        raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.timeout(1800)
def test_the_state_lacks_exactly_what_is_kept_aside_and_what_was_released_stays():
    for seed in range(SEEDS):
        played(seed)


def test_batches_and_rows_are_kept_aside_and_replayed_under_faults():
    plays = [played(seed) for seed in range(SEEDS)]
    assert sum(bool(play.set_aside) for play in plays) > SEEDS // 2
    assert sum(play.replayed > 0 for play in plays) > SEEDS // 2
    assert sum(bool(play.refused) for play in plays) > SEEDS // 2
    assert sum(play.reclaimed > 0 for play in plays) > SEEDS // 2


# Planted bugs --------------------------------------------------------------------------------------------------


def leave_taken(write_set, letters, total_max, *, taken=(), add=add_letters):
    """A replay leaves its letters where they are."""
    add(write_set, letters, total_max)


def lose_letters(write_set, letters, total_max, *, taken=(), add=add_letters):
    """Letters are taken away, and new ones forgotten."""
    add(write_set, (), total_max, taken=taken)


BUGS: dict[str, tuple[str, Any]] = {
    "a replay leaves its letters": ("", mock.patch.object(group_commit, "add_letters", leave_taken)),
    "letters are forgotten": ("", mock.patch.object(group_commit, "add_letters", lose_letters)),
    "released before it is confirmed": ("told cut", mock.patch.object(Releases, "published", released_at_once)),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", BUGS)
def test_the_invariants_find_a_planted_bug(bug):
    kind, planted = BUGS[bug]
    with planted:
        assert is_found(lambda seed: play(seed, kind, "replica"), range(LOOK_FOR))
