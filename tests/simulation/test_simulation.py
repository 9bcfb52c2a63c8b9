"""Whatever goes wrong, every invariant holds, and once nothing goes wrong any more, a run finishes.

TXBATCH_SIMULATION_SEEDS sets how many seeds are played; `python -m tests.simulation` plays any number of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import pytest

from coordinator.plain.kafka.partition_manager import OffsetManager
from coordinator.testing.simulated.fault_plan import FaultPlan, Strike
from coordinator.testing.simulated.sim_engine import SimEngine
from coordinator.topology.planning.plan import Plan
from coordinator.transactional.machine import processing
from coordinator.transactional.start import takeover
from state.redis_client import function_library
from tests.simulation import workload
from tests.simulation.__main__ import again
from tests.simulation.coverage import REPLIES, Coverage
from tests.simulation.exhaustive import FIRST_OF_SINGLES, singles
from tests.simulation.mutants.catalogue import MUTANTS
from tests.simulation.mutants.patch import planted
from tests.simulation.permanent_seeds import PERMANENT
from tests.simulation.playing import played
from tests.simulation.reduced import kind_of, reduced
from tests.simulation.scenario import PLAIN, Outcome, Scenario
from tests.simulation.simulation import simulate
from tests.simulation.workload import SPOUTS

SEEDS = int(os.environ.get("TXBATCH_SIMULATION_SEEDS", "60"))
IS_FULL = SEEDS >= 1_000
"""Whether as much is played as by `make nightly`: then all is hit, and each fault is tried at all of its places."""
PROCESSES = (os.cpu_count() or 1) if IS_FULL and "PYTEST_XDIST_WORKER" not in os.environ else 1
LOOK_FOR = 40
FEW_FAULTS = 60
"""A planted bug has to be found within this many seeds."""


def assert_holds(outcome: Outcome) -> None:
    assert not outcome.violation, f"{outcome.violation}\nagain: {again(outcome)}"


@cache
def play(seed: int) -> Outcome:
    return simulate(Scenario.of(seed))


@pytest.fixture(scope="module")
def coverage() -> Coverage:
    """What all schedules of this module have hit together."""
    return Coverage()


@pytest.mark.timeout(3600)
def test_every_schedule_keeps_every_invariant_and_ends(coverage):
    for outcome in played(map(Scenario.of, range(SEEDS)), PROCESSES):
        coverage.add(outcome)
        assert_holds(outcome)


@pytest.mark.timeout(3600)
def test_every_single_fault_at_its_first_opportunities_keeps_every_invariant(coverage):
    for outcome in played(singles(FIRST_OF_SINGLES if IS_FULL else 1), PROCESSES):
        coverage.add(outcome)
        assert_holds(outcome)


@pytest.mark.skipif(not IS_FULL, reason="needs as many seeds as make nightly plays")
def test_together_they_have_hit_every_fault_and_every_answer(coverage):
    assert coverage.never() == []


def test_the_answers_that_are_counted_are_those_of_functions_that_exist():
    texts = (
        file.read_text(encoding="utf-8")
        for file in Path(function_library.__file__).with_name("functions").glob("*.lua")
    )
    assert REPLIES.keys() <= {name for text in texts for name in re.findall(r"^register\('(\w+)'", text, re.MULTILINE)}


@pytest.mark.parametrize("seed", PERMANENT)
def test_a_schedule_that_failed_once_does_not_fail_again(seed):
    assert_holds(simulate(Scenario.of(seed)))


@pytest.mark.parametrize("kind", [*SPOUTS, PLAIN])
def test_without_faults_one_run_reads_everything(kind):
    outcome = simulate(Scenario.of(7, kind=kind).with_faults(()))
    assert_holds(outcome)
    assert outcome.struck == ()
    assert {end.partition(": ")[2] for end in outcome.ends} == {"done"}


def test_in_some_runs_tasks_share_those_of_spark(monkeypatch):
    tasks_of_a_partition: Counter[int] = Counter()

    in_slots = Plan.in_slots

    def noted(plan, slots):
        found = in_slots(plan, slots)
        tasks_of_a_partition[max(len(tasks) for stage in found.stages for tasks in stage.partitions)] += 1
        return found

    monkeypatch.setattr(Plan, "in_slots", noted)
    for seed in range(6):
        assert_holds(simulate(Scenario.of(seed)))
    assert tasks_of_a_partition[1]
    assert tasks_of_a_partition.total() > tasks_of_a_partition[1]


def test_a_seed_is_the_same_schedule_whatever_the_hash_seed():
    program = "from tests.simulation.simulation import *; print(simulate(Scenario.of(11)).trace)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "77")
    }
    assert traces == {f"{play(11).trace}\n".encode()}


def test_the_faults_of_a_swarm_played_alone_are_the_same_schedule():
    swarm = play(3)
    again = simulate(swarm.scenario.with_faults(swarm.struck))
    assert (again.trace, again.struck) == (swarm.trace, swarm.struck)


def test_a_fault_is_written_as_it_is_read():
    strike = Strike("server.goes_back", 12)
    assert Strike.parse(str(strike)) == strike


def test_what_a_fault_is_made_of_does_not_depend_on_the_others():
    def drawn(*faults: Strike) -> float:
        plan = FaultPlan(5, {}, frozenset(faults))
        for _ in range(4):
            plan.strikes("bolt.fails")
        assert plan.strikes("server.goes_back")
        return plan.drawn("server.goes_back").random()

    alone = drawn(Strike("server.goes_back", 0))
    assert alone == drawn(Strike("server.goes_back", 0), Strike("bolt.fails", 2))


# Planted bugs --------------------------------------------------------------------------------------------------


acked_blindly = planted(MUTANTS["plain-unnamed-root-acked"].patches)
stored_blindly = mock.patch.object(OffsetManager, "lowest_open", return_value=None)
unchained = mock.patch.object(processing, "chained", lambda outcomes, known: outcomes)


@pytest.mark.parametrize("bug", [acked_blindly, stored_blindly], ids=["acked", "stored"])
def test_rows_of_a_plain_topology_that_are_done_before_they_are_processed_are_found(bug):
    with bug:
        assert any(simulate(Scenario.of(seed, kind=PLAIN)).violation for seed in range(LOOK_FOR))


@pytest.mark.nightly
def test_batches_of_a_wave_that_need_not_follow_one_another_are_found():
    """It takes an emitter that is run twice and cuts an empty batch in one run only: small batches make that likely."""
    rates = (("task.has_a_twin", 0.5), ("input.moves", 0.95))
    scenarios = [replace(Scenario.of(seed, "opaque"), tasks=2, rates=rates) for seed in range(LOOK_FOR)]
    with mock.patch.object(workload, "TAKES", (0, 0, 1)):
        with unchained:
            found = next(scenario for scenario in scenarios if simulate(scenario).violation)
        assert not simulate(found).violation


def with_rates(seed: int, kind: str, **rates: float) -> Scenario:
    """A scenario in which a few faults strike often; "__" stands for a dot in their names."""
    named = tuple((name.replace("__", "."), rate) for name, rate in rates.items())
    return replace(Scenario.of(seed, kind), marks=True, rates=named)


def test_states_and_input_that_are_taken_over_in_silence_are_found():
    with mock.patch.object(takeover, "check_topology", return_value=[]):
        changing = (with_rates(seed, "cut", operator__changes_states=0.5) for seed in range(LOOK_FOR))
        assert any("whose states are" in simulate(scenario).violation for scenario in changing)
    with mock.patch.object(takeover, "check_input", return_value=[]):
        changing = (with_rates(seed, "cut", operator__changes_input=0.5) for seed in range(LOOK_FOR))
        assert any("continues in silence" in simulate(scenario).violation for scenario in changing)


@pytest.mark.nightly
def test_waves_that_are_never_released_are_found():
    with mock.patch.object(SimEngine, "release", return_value=None):
        assert any("waves of the engine" in simulate(Scenario.of(seed, "cut")).violation for seed in range(LOOK_FOR))


@pytest.mark.nightly
def test_a_failing_seed_is_made_small():
    """All faults that are left are needed, and the violation is the same; of a long story that takes a minute."""
    with planted(MUTANTS["residue-ignored"].patches):
        outcomes = (simulate(Scenario.of(seed, kind="cut")) for seed in range(200, 400))
        failing = next(outcome for outcome in outcomes if outcome.violation and len(outcome.struck) < FEW_FAULTS)
        small = reduced(failing)
        assert kind_of(small) == kind_of(failing)
        assert len(small.struck) < len(failing.struck)
        for fault in small.struck:
            fewer = simulate(small.scenario.with_faults(set(small.struck) - {fault}))
            assert kind_of(fewer) != kind_of(small)
