"""Each bolt alone, in a few milliseconds."""

from coordinator import run_bolt

from myproject.bolts import StoreVisits, SumVisits


def test_visits_are_summed_up_by_page() -> None:
    trial = run_bolt(SumVisits(), [["/", 5], ["/docs", 60], ["/", 7]], fields=["page", "seconds"])

    assert sorted(trial.emitted()) == [["/", 2, 12], ["/docs", 1, 60]]


def test_a_visit_of_negative_length_is_refused() -> None:
    trial = run_bolt(SumVisits(), [["/", 5], ["/", -3]], fields=["page", "seconds"])

    assert trial.emitted() == [["/", 1, 5]]
    assert [letter.reason for letter in trial.dead_letters] == ["a visit cannot take -3 seconds"]


def test_transactions_add_up_in_the_state() -> None:
    first, second = [["/", 2, 12], ["/docs", 1, 60]], [["/", 1, 8]]

    trial = run_bolt(StoreVisits(), first, second, fields=["page", "visits", "seconds"])

    assert trial.states == {"visits": {"/": 3, "/docs": 1}, "seconds": {"/": 20, "/docs": 60}}
