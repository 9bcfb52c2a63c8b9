"""Where visits begin and end, and which days have a visitor."""

from __future__ import annotations

from benchmarks.clickstream import expected
from coordinator.trying.bolt_trial import run_bolt
from examples.clickstream import DAY_S, PAUSE_S, CountVisits, date_of, make_data

MIDNIGHT = 20_455 * DAY_S
BEFORE, AFTER = "2026-01-01", "2026-01-02"


def counted(*batches):
    """Visits and visitors by day, from batches of the seconds at which one user saw a page."""
    trial = run_bolt(CountVisits(), *([[ts, "ann"] for ts in batch] for batch in batches), fields=["ts", "user"])
    return trial.states["visits"], trial.states.get("visitors", {})


def test_a_visit_lasts_as_long_as_no_pause_is_longer_than_half_an_hour():
    times = [MIDNIGHT, MIDNIGHT + PAUSE_S, MIDNIGHT + 2 * PAUSE_S + 1]
    assert counted(times) == ({AFTER: 2}, {AFTER: 1})


def test_a_visit_may_be_cut_between_transactions():
    assert counted([MIDNIGHT], [MIDNIGHT + PAUSE_S], [MIDNIGHT + 3 * PAUSE_S]) == ({AFTER: 2}, {AFTER: 1})


def test_a_visit_across_midnight_begins_on_the_first_day_and_has_a_visitor_on_both():
    assert counted([MIDNIGHT - 10, MIDNIGHT + 10]) == ({BEFORE: 1}, {BEFORE: 1, AFTER: 1})


def test_a_late_event_begins_no_visit_and_counts_for_no_earlier_day():
    assert counted([MIDNIGHT + 10], [MIDNIGHT - 10]) == ({AFTER: 1}, {AFTER: 1})


def test_days_are_named_by_their_date():
    assert (date_of(0), date_of(MIDNIGHT // DAY_S)) == ("1970-01-01", AFTER)


def test_the_sample_is_the_same_every_time_and_in_the_order_of_time(tmp_path):
    make_data(tmp_path / "a", 300, days=2)
    make_data(tmp_path / "b", 300, days=2)
    assert expected(tmp_path / "a") == expected(tmp_path / "b")
