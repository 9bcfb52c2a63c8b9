"""A run given up, or held up beyond the message timeout, at every tick there is."""

from __future__ import annotations

import logging

import pytest

from tests.support.scenarios.playing import play
from tests.support.scenarios.small import SMALL, small

TIMEOUT = "timeout"
ABANDON = "abandon"


@pytest.fixture(scope="module")
def ticks() -> int:
    """How many an undisturbed run takes."""
    return play(SMALL)


@pytest.mark.often("0")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_abandoned_at_any_tick_is_gone_on_with_exactly(ticks, seed):
    assert ticks > 80
    for tick in range(ticks):
        play(small(seed=seed, interruptions=((tick, ABANDON),)))


@pytest.mark.nightly
def test_a_run_abandoned_twice_is_gone_on_with_exactly(ticks):
    for tick in range(0, ticks, 5):
        for later in range(tick + 1, ticks + tick, 25):
            play(small(interruptions=((tick, ABANDON), (later, ABANDON))))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_what_exceeds_the_message_timeout_at_any_tick_leaves_nothing_behind_and_is_done_again(ticks, seed, caplog):
    failed: list[int] = []
    with caplog.at_level(logging.WARNING, logger="txbatch"):
        for tick in range(ticks):
            scenario = small(seed=seed, interruptions=((tick, TIMEOUT),))
            play(scenario, watch=lambda run: failed.append(run.statistics.failed_attempts))
    overdue = "crashed: it exceeded the message timeout of"
    assert any(f"wave 1 of 2 attempts {overdue}" in text for text in caplog.messages)
    assert any(f"the commit phase of 2 attempts {overdue}" in text for text in caplog.messages)
    assert sum(map(bool, failed)) > ticks // 2
