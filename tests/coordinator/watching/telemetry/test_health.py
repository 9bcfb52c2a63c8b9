"""A run is alive while its loop turns, and ready once it has done something or found nothing to do."""

from __future__ import annotations

import pytest

from coordinator.watching.run_observer import RunBegan, RunEnded, TurnEnded, WaveEnded, WaveStarted
from coordinator.watching.statistics.run_statistics import RunStatistics
from coordinator.watching.telemetry.health import TURN_MAX_S, Health, ProbeAnswer

BEGAN = RunBegan("lines", RunStatistics(), 30.0)


class Time:
    now = 100.0

    def __call__(self):
        return self.now


def health_of(*observations, time=None):
    health = Health(time or Time())
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
    time = Time()
    health = health_of(BEGAN, TurnEnded(is_idle=True), time=time)
    time.now += TURN_MAX_S
    assert health.alive().is_good
    time.now += 1
    assert health.alive() == ProbeAnswer(False, "the last turn ended 121 s ago, more than 120 s: the run hangs")
    health(TurnEnded(is_idle=True))
    assert health.alive().is_good


def test_a_turn_may_last_three_message_timeouts():
    time = Time()
    health = health_of(RunBegan("lines", RunStatistics(), 100.0), time=time)
    time.now += 300
    assert health.alive().is_good
    time.now += 1
    assert not health.alive().is_good


def test_without_a_message_timeout_a_wave_may_take_for_ever():
    time = Time()
    health = health_of(RunBegan("lines", RunStatistics(), None), time=time)
    time.now += 1e9
    assert health.alive().is_good


def test_a_start_and_an_end_are_alive_however_long_they_take():
    time = Time()
    starting, ending = health_of(time=time), health_of(BEGAN, RunEnded(None), time=time)
    time.now += 1e6
    assert starting.alive() == ProbeAnswer(True, "starting")
    assert ending.alive().is_good
