"""Schedules of topologies with one task each: waves that need no shuffle, and begin again for a commit phase."""

from __future__ import annotations

from collections import Counter
from random import Random
from unittest import mock

from coordinator.building.topology import Topology
from coordinator.planning.plan import Plan
from coordinator.spark.stage import MeetingOnTheSpot
from coordinator.transactional.engine import EarlyCommit
from tests.simulation import simulation
from tests.simulation.simulation import Scenario, simulate
from tests.simulation.workload import topology

SEEDS = 12


class Least(Random):
    """Draws the fewest tasks."""

    def randint(self, a: int, b: int) -> int:
        return a


def narrow(kind: str, *, reads: bool, random: Random) -> Topology:
    return topology(kind, reads=reads, random=Least())


def test_every_schedule_of_one_task_keeps_every_invariant_and_ends():
    met: Counter[bool] = Counter()
    is_possible = MeetingOnTheSpot.is_possible

    def noted(plan: Plan, early: EarlyCommit) -> bool:
        answer = is_possible(plan, early)
        met[answer] += 1
        return answer

    with (
        mock.patch.object(simulation, "topology", narrow),
        mock.patch.object(MeetingOnTheSpot, "is_possible", noted),
    ):
        violations = [outcome.violation for outcome in map(simulate, map(Scenario.of, range(SEEDS)))]
    assert violations == [None] * SEEDS
    assert met[True] > SEEDS
    assert met[False]
