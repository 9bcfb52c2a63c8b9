"""Bounded states and parts under faults: they hold what the rows that are in make of them, and planted bugs show."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import pytest

from state.commits.state_writes import StateWrites
from state.redis_owner import arguments as redis_arguments
from state.values.state_kind import KEEP_ALL
from tests.simulation.invariants import ViolatedError
from tests.simulation.kept import KeptSimulation
from tests.simulation.scenario import Scenario
from tests.simulation.workload import SPOUTS

SEEDS = max(6, int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60")) // 60)
LOOK_FOR = 12
"""A planted bug has to be found within this many seeds."""


def play(seed: int) -> KeptSimulation:
    simulation = KeptSimulation(Scenario.of(seed, list(SPOUTS)[seed % len(SPOUTS)]))
    simulation.play()
    return simulation


@pytest.mark.timeout(1800)
def test_bounded_states_and_parts_hold_what_the_rows_make_of_them():
    assert sum(play(seed).cuts > 0 for seed in range(SEEDS)) > SEEDS // 2


def no_trim(head: Any, retention: Any) -> list[Any]:
    """Cuts nothing off."""
    return []


def any_score(writes: StateWrites, key: Any, value: Any) -> None:
    """Drops every second member of a ranked state when writes are composed."""
    if writes.retention is not KEEP_ALL and len(writes.puts) % 2:
        return
    writes.puts[key] = value


@pytest.mark.parametrize(
    "planted",
    [mock.patch.object(redis_arguments, "_retained", no_trim), mock.patch.object(StateWrites, "put", any_score)],
    ids=["nothing is cut", "members are lost"],
)
def test_a_planted_bug_is_found(planted: Any) -> None:
    with planted:
        for seed in range(LOOK_FOR):
            try:
                play(seed)
            except ViolatedError as error:
                assert "heaviest" in str(error) or "lightest" in str(error)  # noqa: PT017 - the play has to raise it
                return
    raise AssertionError(f"not found within {LOOK_FOR} seeds")
