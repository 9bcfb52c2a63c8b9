"""Where values stand in a chart."""

from __future__ import annotations

import math

import pytest

from coordinator.ui.charts.scale import round_above, thinned, total, unbroken, usual_height


@pytest.mark.parametrize(
    ("value", "highest"),
    [(0.0, 1.0), (0.7, 0.8), (1.0, 1.0), (1.1, 1.2), (12.5, 16.0), (99.0, 100.0), (4_300.0, 5_000.0), (math.inf, 1.0)],
)
def test_a_chart_ends_at_a_round_number_above_its_values(value: float, highest: float) -> None:
    assert round_above(value) == pytest.approx(highest)


def test_few_points_are_all_kept() -> None:
    assert thinned([(1.0, 2.0), (2.0, 3.0)], 300) == [(1.0, 2.0), (2.0, 3.0)]


def test_of_ten_thousand_points_the_spike_of_one_second_is_kept() -> None:
    points = [(float(at), 1.0) for at in range(10_000)]
    points[7_321] = (7_321.0, 99.0)
    kept = thinned(points, 300)
    assert len(kept) <= 301
    assert (7_321.0, 99.0) in kept
    assert kept == sorted(kept)
    assert kept[-1] == points[-1]


def test_nothing_is_drawn_where_nothing_was_told() -> None:
    points = [(1.0, 1.0), (2.0, 1.0), (60.0, 1.0)]
    assert list(unbroken(points, 5.0)) == [[(1.0, 1.0), (2.0, 1.0)], [(60.0, 1.0)]]
    assert list(unbroken([], 5.0)) == []


def test_layers_add_up() -> None:
    assert total([[(1.0, 2.0), (2.0, 0.0)], [(1.0, 3.0), (2.0, 1.0)]]) == [(1.0, 5.0), (2.0, 1.0)]


def test_a_slow_start_does_not_flatten_what_follows() -> None:
    assert usual_height([30.0, *[1.0] * 99]) == 1.5
    assert usual_height([5.0, *[1.0] * 99]) == 5.0, "it is not that much higher"
    assert usual_height([30.0]) == 30.0
    assert usual_height([0.0] * 99 + [1.0]) == 1.0
