"""Playing many schedules: the same on any number of processes, resumed where it stopped, summed up honestly."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice

from coordinator.testing.simulated.fault_plan import Strike
from tests.simulation.__main__ import Progress, again, main
from tests.simulation.coverage import Coverage
from tests.simulation.exhaustive import SMALL, opportunities, pairs, singles
from tests.simulation.fault_rates import RATES
from tests.simulation.playing import played
from tests.simulation.scenario import Outcome, Scenario
from tests.simulation.simulation import simulate
from tests.simulation.workload import SPOUTS


def outcome_for(scenario: Scenario) -> Outcome:
    return replace(outcome_of(Strike("server.goes_back", 3), replies=Counter()), scenario=scenario)


def outcome_of(*struck: Strike, replies: Counter[tuple[str, str]]) -> Outcome:
    return Outcome(Scenario.of(1), "", "", struck, Counter({"run: done": 1}), replies, {}, ())


def test_two_processes_give_the_same_outcomes_in_the_same_order_as_one():
    scenarios = list(islice(singles(1), 5))
    assert list(played(scenarios, 2)) == list(played(scenarios, 1))


def test_the_command_that_plays_an_outcome_again_names_all_it_depends_on():
    own = Scenario.of(5).kind
    other = next(kind for kind in SPOUTS if kind != own)
    told = [again(outcome_for(scenario)) for scenario in (Scenario.of(5), Scenario.of(5, other), SMALL["reading"])]
    assert told == [
        "python -m tests.simulation --seed 5 --seeds 1 --exactly server.goes_back:3",
        f"python -m tests.simulation --seed 5 --seeds 1 --kind '{other}' --exactly server.goes_back:3",
        "python -m tests.simulation --small reading --exactly server.goes_back:3",
    ]


def test_what_was_never_hit_is_named():
    coverage = Coverage()
    coverage.add(outcome_of(Strike("server.goes_back", 3), replies=Counter({("acquire", "OK"): 2})))
    assert set(RATES) - set(coverage.never()) == {"server.goes_back"}
    assert "acquire OK" not in coverage.never()
    assert "acquire RACED" in coverage.never()
    assert any(line.split() == ["server.goes_back", "1"] for line in coverage.lines())


def test_every_fault_that_a_small_run_can_meet_is_tried_at_each_of_its_first_opportunities():
    found = opportunities("one-task", 2)
    assert Strike("server.loses_answer", 0) in found
    assert Strike("server.loses_answer", 1) in found
    assert Strike("kill@commit.sending", 0) in found
    assert Strike("server.loses_answer", 2) not in found


def test_a_single_fault_strikes_and_no_other_does():
    scenario = next(iter(singles(1)))
    assert scenario.exactly == frozenset(simulate(scenario).struck)


def test_pairs_are_all_pairs():
    count = sum(len(opportunities(name, 1)) * (len(opportunities(name, 1)) - 1) // 2 for name in SMALL)
    assert sum(1 for _ in pairs(1)) == count
    assert all(scenario.exactly and len(scenario.exactly) == 2 for scenario in islice(pairs(1), 100))


def test_a_search_continues_where_it_stopped(tmp_path, capsys):
    path = tmp_path / "done.txt"
    path.write_text("3\n")
    assert main(["--seed", "0", "--seeds", "4", "--kind", "plain", "--processes", "1", "--resume", str(path)]) == 0
    assert "\n1 schedules in " in capsys.readouterr().out
    assert Progress(path).done == 4
