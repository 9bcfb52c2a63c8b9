"""The cost model finds costs that are known, and says what is tight."""

from __future__ import annotations

import random

import pytest

from benchmarks.cost_model import (
    BEGIN,
    END,
    FITTED,
    HELD_BACK,
    CostModel,
    Point,
    fit,
    limits,
    make_cells,
    point,
    with_section,
)
from benchmarks.suite.cells import Measurement

TRUE_COSTS = {
    "driver": (0.014, 0.0008, 0.0, 0.0),
    "java": (0.1, 0.0004, 2e-6, 1e-6),
    "workers": (0.03, 0.0009, 3e-6, 2e-6),
    "server": (0.0, 0.0001, 0.0, 1e-6),
}


def made_up(lines, window, noise=0.0, seed=7):
    """A run of the word count as it would be at those costs, and a vocabulary that grows with the root."""
    draw = random.Random(f"{seed} {lines} {window}")
    amounts = (2 / window, 1.0, float(lines), 6 * lines**0.8)
    seconds = {
        role: sum(cost * amount for cost, amount in zip(costs, amounts, strict=True))
        * draw.uniform(1 - noise, 1 + noise)
        for role, costs in TRUE_COSTS.items()
    }
    return Point(f"{lines}x{window}", amounts, seconds)


def test_costs_without_noise_are_found_again():
    model = fit([made_up(*pair) for pair in FITTED])

    for role, costs in TRUE_COSTS.items():
        assert model.by_role[role] == pytest.approx(costs, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_runs_that_took_no_part_are_predicted_within_a_fifth_though_each_is_ten_percent_off(seed):
    model = fit([made_up(*pair, noise=0.1, seed=seed) for pair in FITTED])

    for pair in HELD_BACK:
        assert abs(model.error(made_up(*pair))) < 0.2


def test_no_cost_is_negative_though_the_plain_fit_would_make_one_so():
    wrong = [made_up(*pair, noise=0.9, seed=seed) for pair in FITTED for seed in range(3)]

    assert all(cost >= 0 for costs in fit(wrong).by_role.values() for cost in costs)


def test_what_is_held_back_took_no_part_in_the_fit_and_is_enough():
    assert not set(FITTED) & set(HELD_BACK)
    assert len(HELD_BACK) >= 3
    assert len({cell.key for cell in make_cells([*FITTED, *HELD_BACK])}) == len(FITTED) + len(HELD_BACK)


def test_too_few_runs_are_not_fitted():
    with pytest.raises(ValueError, match="3 runs cannot tell 4 costs apart"):
        fit([made_up(*pair) for pair in FITTED[:3]])


def test_the_error_is_a_part_of_what_was_measured():
    model = CostModel({"driver": (0.0, 0.003, 0.0, 0.0)})

    assert model.error(Point("", (1.0, 1.0, 1.0, 1.0), {"driver": 0.002})) == pytest.approx(0.5)


def test_one_thread_of_the_driver_is_the_limit_of_small_transactions_on_many_cores():
    found = limits(CostModel(TRUE_COSTS), lines=20, keys=66, cores=16)

    assert [limit.name for limit in found] == ["driver, one thread", "server, one thread", "Java and workers, 14 cores"]
    # what the waves leave of one core, 0.8 ms a transaction
    assert found[0].per_s == pytest.approx((1 - 0.014 / 0.3) / 0.0008)


def test_large_transactions_need_all_cores():
    assert limits(CostModel(TRUE_COSTS), lines=1_000_000, keys=1000, cores=16)[0].name == "Java and workers, 14 cores"


def test_waves_with_more_tasks_cost_more_until_nothing_is_left():
    greedy = CostModel({"java": (1.0, 0.001, 0.0, 0.0)})

    (limit,) = limits(greedy, lines=1, keys=1, cores=16)

    assert limit.per_s == 0


def test_a_point_is_the_median_of_the_rounds_per_transaction():
    rounds = [
        Measurement(n, 100 * n, 6.0, True, {"driver": cost * n}, {}, {"waves": n / 10})
        for n, cost in [(100, 0.002), (200, 0.009), (300, 0.001)]
    ]

    found = point(make_cells([(100, 20)])[0], rounds, keys=55.0)

    assert found.amounts == pytest.approx((0.1, 1.0, 100.0, 55.0))
    assert found.seconds == pytest.approx({"driver": 0.002})


def test_only_the_part_between_the_marks_is_replaced():
    document = f"# Before\n\n{BEGIN}\n\nold\n\n{END}\n\nAfter\n"

    assert with_section(document, "new") == f"# Before\n\n{BEGIN}\n\nnew\n\n{END}\n\nAfter\n"
    with pytest.raises(ValueError, match="needs the lines"):
        with_section("# Before\n", "new")
