"""Schedules of waves that are dealt in shares: nothing is shuffled, and a commit phase of its own begins again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest

from coordinator.engines.waves import shares, wave
from coordinator.engines.waves.shares import Share
from coordinator.engines.waves.stage import WaveInput
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit
from tests.simulation.scenario import Scenario
from tests.simulation.simulation import simulate
from tests.simulation.workload import SPOUTS

SEEDS = 4
"""On each kind of spout."""


@pytest.mark.often("1")
@pytest.mark.parametrize("tasks", [1, 2])
def test_every_schedule_with_shares_keeps_every_invariant_and_ends(tasks: int):
    met: Counter[int] = Counter()

    def noted(plan: Plan, given: WaveInput, early: EarlyCommit) -> tuple[Share, ...]:
        found = shares.shares_of(plan, given, early)
        met[len(found)] += 1
        return found

    scenarios = [replace(Scenario.of(seed, kind), tasks=tasks) for kind in SPOUTS for seed in range(SEEDS)]
    with (
        mock.patch.object(shares, "LEAST_ATTEMPTS", 1),
        mock.patch.object(Plan, "in_slots", lambda plan, _: replace(plan, slots=2)),
        mock.patch.object(wave, "shares_of", noted),
    ):
        violations = [simulate(scenario).violation for scenario in scenarios]
    assert violations == [""] * len(scenarios)
    assert met[0]
    assert met[tasks] > 2 * SEEDS
