"""Schedules of topologies with one task each: waves that need no shuffle, and begin again for a commit phase."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest import mock

from coordinator.engines.spark.stage import MeetingOnTheSpot
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.engine import EarlyCommit
from tests.simulation.scenario import Scenario
from tests.simulation.simulation import simulate
from tests.simulation.workload import SPOUTS

SEEDS = 4
"""On each kind of spout."""


def test_every_schedule_of_one_task_keeps_every_invariant_and_ends():
    met: Counter[bool] = Counter()
    is_possible = MeetingOnTheSpot.is_possible

    def noted(plan: Plan, early: EarlyCommit) -> bool:
        answer = is_possible(plan, early)
        met[answer] += 1
        return answer

    scenarios = [replace(Scenario.of(seed, kind), tasks=1) for kind in SPOUTS for seed in range(SEEDS)]
    with mock.patch.object(MeetingOnTheSpot, "is_possible", noted):
        violations = [simulate(scenario).violation for scenario in scenarios]
    assert violations == [""] * len(scenarios)
    assert met[True] > len(scenarios)
    assert met[False]
