"""Whatever goes wrong on any of the servers of a topology's slots, every invariant holds, and a run finishes."""

from __future__ import annotations

import os

import pytest

from tests.simulation.sharded import simulate_shards

SEEDS = int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60")) // 2
"""Of each kind: as many in all as of one slot."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("has_losses", [False, True], ids=["nothing is lost", "servers lose"])
def test_every_schedule_over_shards_keeps_every_invariant_and_ends(has_losses):
    compared = named = 0
    for seed in range(SEEDS):
        simulation = simulate_shards(seed, 2 + seed % 3, has_losses=has_losses)
        compared += simulation.compared
        named += simulation.named
    assert compared > 10 * SEEDS
    assert bool(named) == has_losses
