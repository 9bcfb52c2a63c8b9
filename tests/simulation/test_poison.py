"""Poison under every fault there is: the state is the fold without what is quarantined, and of all after the replays.

TXBATCH_SIMULATION_SEEDS sets how many seeds are played, as for the other simulations.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any
from unittest import mock

import pytest

from coordinator.testing.simulated.timeline import SimulationStuckError
from coordinator.transactional.machine import failures
from coordinator.transactional.machine.metadata_log import MetadataLog
from state.commits.quarantine import SetAside
from state.redis_owner import arguments as redis_arguments
from tests.simulation.mutants.patch import LIBRARY, Patch
from tests.simulation.mutants.patch import planted as planted_in_source
from tests.simulation.poison import PoisonSimulation, kind_of
from tests.simulation.scenario import Scenario
from tests.simulation.workload import SPOUTS
from tests.support.scenarios.planted import is_found

SEEDS = max(5, int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60")) // 40)
LOOK_FOR = 40
"""A planted bug has to be found within this many seeds."""


@cache
def played(seed: int, kind: str = "") -> PoisonSimulation:
    simulation = PoisonSimulation(Scenario.of(seed, kind or kind_of(seed)))
    try:
        simulation.play()
    except (AssertionError, SimulationStuckError) as error:
        raise AssertionError(f"seed {seed} {kind}: {error}; {list(simulation.timeline.story)[-30:]}") from error
    return simulation


@pytest.mark.timeout(1800)
def test_whatever_happens_the_state_lacks_exactly_what_is_quarantined():
    for seed in range(SEEDS):
        played(seed)


def test_batches_are_set_aside_and_replayed_under_faults():
    plays = [played(seed) for seed in range(SEEDS)]
    assert sum(bool(play.set_aside) for play in plays) > SEEDS // 2
    assert sum(play.replayed > 0 for play in plays) > SEEDS // 2
    assert sum(bool(play.discarded) for play in plays) > SEEDS // 10


@pytest.mark.parametrize("kind", SPOUTS)
def test_without_faults_exactly_the_batches_with_poison_are_set_aside_and_then_replayed(kind):
    simulation = PoisonSimulation(Scenario.of(7, kind).with_faults(()))
    simulation.play()
    assert 1 <= len(simulation.set_aside) <= len(simulation._poison)
    assert simulation.replayed == len(simulation.set_aside)
    assert set(simulation.ends) == {"done"}


# Planted bugs --------------------------------------------------------------------------------------------------


def take_nothing(index, change, *, quarantine=redis_arguments._quarantine):
    """A replay leaves the record where it is."""
    return quarantine(index, change) if isinstance(change, SetAside) else []


def keep_no_record(index, change, *, quarantine=redis_arguments._quarantine):
    """Poison is committed empty and forgotten."""
    return [] if isinstance(change, SetAside) else quarantine(index, change)


TAKES_WHAT_IS_THERE = Patch(
    LIBRARY,
    "  if redis.call('HEXISTS', section.key, txid) == 0 then\n    return {'GONE', txid}\n  end\n",
    "",
)

BUGS: dict[str, tuple[str, Any]] = {
    "a replay leaves the record": ("", mock.patch.object(redis_arguments, "_quarantine", take_nothing)),
    "poison leaves no record": ("", mock.patch.object(redis_arguments, "_quarantine", keep_no_record)),
    "a batch is published that an operator has removed": ("", planted_in_source((TAKES_WHAT_IS_THERE,))),
    "replays are counted by the spout": ("cut", mock.patch.object(MetadataLog, "carried_to", return_value={})),
    "nobody asks where a batch ends": ("opaque", mock.patch.object(failures, "batch_input_of", return_value=None)),
}


@pytest.mark.often(
    "a replay leaves the record",
    "poison leaves no record",
    "a batch is published that an operator has removed",
    "replays are counted by the spout",
)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("bug", BUGS)
def test_the_invariants_find_a_planted_bug(bug):
    kind, planted = BUGS[bug]
    with planted:
        assert is_found(lambda seed: PoisonSimulation(Scenario.of(seed, kind or kind_of(seed))).play(), range(LOOK_FOR))
