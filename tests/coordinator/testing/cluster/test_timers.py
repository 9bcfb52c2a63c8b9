"""Time stands still until it is moved, and then everything falls due in its order."""

from __future__ import annotations

from functools import partial

import pytest

from coordinator.testing.cluster.timers import Timers


def recording(*periods):
    timers, calls = Timers(), []

    def call(period):
        calls.append((timers.now_s, period))

    for period in periods:
        timers.every(period, partial(call, period))
    return timers, calls


def test_an_action_is_called_at_each_multiple_of_its_period():
    timers, calls = recording(10)
    timers.advance(9.99)
    assert calls == []
    timers.advance(0.01)
    assert calls == [(10, 10)]
    timers.advance(25)
    assert calls == [(10, 10), (20, 10), (30, 10)]
    assert timers.now_s == 35


def test_actions_come_in_order_of_time_then_of_registration():
    timers, calls = recording(4, 2)
    timers.advance(4)
    assert calls == [(2, 2), (4, 4), (4, 2)]


def test_many_small_periods_do_not_drift():
    timers, calls = recording(0.1)
    timers.advance(1000)
    assert len(calls) == 10_000
    assert calls[-1] == (1000, 0.1)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_time_does_not_go_back_nor_jump_out_of_reach(seconds):
    timers, calls = recording()
    with pytest.raises(ValueError, match=f"time cannot be moved by {seconds} seconds"):
        timers.advance(seconds)
    assert (timers.now_s, calls) == (0.0, [])
