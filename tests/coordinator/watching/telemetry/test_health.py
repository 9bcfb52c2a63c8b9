"""A run is alive while its loop turns, and ready once it has done something or found nothing to do."""

from __future__ import annotations

import pytest

from coordinator.watching.run_observer import RunBegan, RunEnded, TurnEnded, WaveEnded, WaveStarted
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.health import TURN_MAX_S, Health, ProbeAnswer
from tests.support.cli.in_process import HandClock

BEGAN = RunBegan("lines", RunStatistics(), 30.0)


def health_of(*observations, time=None):
    health = Health(time or HandClock())
    for observation in observations:
        health(observation)
    return health


@pytest.mark.parametrize(
    ("observations", "reason"),
    [
        ((), "starting: Spark is not up yet, or the topology is not owned yet"),
        ((BEGAN,), "the first wave is under way"),
        ((BEGAN, WaveStarted(1), TurnEnded(is_idle=False)), "the first wave is under way"),
        ((BEGAN, TurnEnded(is_idle=True), RunEnded(None)), "the run has ended"),
    ],
    ids=["starting", "owned", "first wave", "ended"],
)
def test_a_run_is_not_ready(observations, reason):
    assert health_of(*observations).ready() == ProbeAnswer(False, reason)


@pytest.mark.parametrize("observation", [TurnEnded(is_idle=True), WaveEnded(1, (), 0.5)], ids=["idle", "a wave"])
def test_a_run_is_ready_with_its_first_wave_or_without_work(observation):
    health = health_of(BEGAN, observation, TurnEnded(is_idle=False))
    assert health.ready() == ProbeAnswer(True, "running")


def test_a_run_whose_loop_no_longer_turns_is_not_alive():
    time = HandClock()
    health = health_of(BEGAN, TurnEnded(is_idle=True), time=time)
    time.now_s += TURN_MAX_S
    assert health.alive().is_good
    time.now_s += 1
    assert health.alive() == ProbeAnswer(False, "the last turn ended 121 s ago, more than 120 s: the run hangs")
    health(TurnEnded(is_idle=True))
    assert health.alive().is_good


@pytest.mark.parametrize(
    ("observations", "after_s", "is_alive"),
    [
        ((RunBegan("lines", RunStatistics(), 100.0),), 300, True),
        ((RunBegan("lines", RunStatistics(), 100.0),), 301, False),
        ((RunBegan("lines", RunStatistics(), None),), 1e9, True),
        ((), 1e6, True),
        ((BEGAN, RunEnded(None)), 1e6, True),
    ],
    ids=["three message timeouts", "longer", "no message timeout", "starting", "ended"],
)
def test_a_turn_may_last_three_message_timeouts_and_a_start_or_an_end_any_time(observations, after_s, is_alive):
    time = HandClock()
    health = health_of(*observations, time=time)
    time.now_s += after_s
    assert health.alive().is_good is is_alive
    assert health_of(time=time).alive() == ProbeAnswer(True, "starting")
