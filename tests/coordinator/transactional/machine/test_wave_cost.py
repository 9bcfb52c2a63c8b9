"""A wave's own cost is told from that of its attempts as soon as waves differ in size. Exact but for rounding."""

from __future__ import annotations

from random import Random

import pytest

from coordinator.transactional.machine.wave_cost import WaveCost


def after(*waves: tuple[int, float]) -> WaveCost:
    cost = WaveCost()
    for size, seconds in waves:
        cost.note(size, seconds)
    return cost


def test_waves_of_one_size_tell_nothing():
    assert after((32, 0.5), (32, 0.6), (32, 0.4)).fixed_s is None
    assert after((100, 0.5), (105, 0.6), (98, 0.4)).fixed_s is None


@pytest.mark.parametrize("fixed_s", [0.0, 0.1, 2.5])
def test_two_sizes_tell_what_a_wave_costs_by_itself(fixed_s):
    assert after((32, fixed_s + 0.32), (64, fixed_s + 0.64)).fixed_s == pytest.approx(fixed_s)


def test_a_larger_wave_that_took_less_has_only_costs_of_its_own():
    assert after((32, 0.6), (64, 0.4)).fixed_s == pytest.approx((0.75 * 0.6 + 0.4) / 1.75)


def test_a_cost_that_grows_faster_than_the_size_leaves_nothing_to_the_wave():
    assert after((32, 0.1), (64, 1.0)).fixed_s == 0.0


def test_what_was_found_fades_while_sizes_stay_the_same_until_they_differ_again():
    cost = after((32, 0.42), (64, 0.74))
    for _ in range(20):
        cost.note(64, 0.74)
    assert cost.fixed_s is not None
    assert 0.03 < cost.fixed_s < 0.08
    cost.note(32, 0.42)
    assert cost.fixed_s == pytest.approx(0.1)


def test_costs_that_change_are_followed():
    random, cost = Random(5), WaveCost()
    for fixed_s in (0.5, 0.1):
        for _ in range(100):
            size = random.randint(10, 200)
            cost.note(size, fixed_s + 0.001 * size)
        assert cost.fixed_s == pytest.approx(fixed_s, rel=0.02)
