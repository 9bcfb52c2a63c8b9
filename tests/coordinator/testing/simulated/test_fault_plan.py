"""Faults strike as planned; those of a failure are left out until each of the rest is needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.testing.simulated.fault_plan import FaultPlan, Strike, swarm_of
from coordinator.testing.simulated.shrinking import fewest

FAULTS = [Strike(fault, place) for fault in "abc" for place in range(5)]


@given(st.sets(st.sampled_from(FAULTS)), st.sets(st.sampled_from(FAULTS)))
def test_the_faults_that_are_needed_are_left_and_no_others(needed: set[Strike], more: set[Strike]) -> None:
    assert fewest(needed | more, lambda faults: needed <= set(faults)) == sorted(needed)


def test_one_of_two_causes_is_left() -> None:
    either = [{FAULTS[0]}, {FAULTS[3], FAULTS[4]}]
    found = fewest(FAULTS, lambda faults: any(cause <= set(faults) for cause in either))
    assert set(found) in either


def test_a_fault_that_is_ruled_out_or_comes_after_the_end_never_strikes() -> None:
    plan = FaultPlan(1, {"a": 0.9, "b": 0.9})
    plan.rule_out("a")
    struck = {fault: [plan.strikes(fault) for _ in range(20)] for fault in "ab"}
    assert (any(struck["a"]), any(struck["b"])) == (False, True)
    plan.end()
    struck = {fault: [plan.strikes(fault) for _ in range(20)] for fault in "bc"}
    assert (any(struck["b"]), any(struck["c"])) == (False, False)
    assert plan.opportunities == {"a": 20, "b": 40, "c": 20}


def test_whoever_listens_is_told_of_each_strike() -> None:
    told: list[str] = []
    plan = FaultPlan(1, {}, frozenset({Strike("a", 1), Strike("a", 2)}))
    plan.tell = told.append
    assert [plan.strikes("a") for _ in range(4)] == [False, True, True, False]
    assert told == ["a", "a"]


def test_a_swarm_has_about_half_of_its_faults() -> None:
    rates = [swarm_of({"a": (0.5,), "b": (0.1, 0.2)}, seed) for seed in range(200)]
    assert {each["b"] for each in rates} == {0.0, 0.1, 0.2}
    assert 70 < sum(each["a"] == 0.0 for each in rates) < 130
