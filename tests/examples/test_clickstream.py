"""Visits, visitors and page views are those of a plain loop over the events, however they are cut and committed."""

from __future__ import annotations

import pytest

from benchmarks.clickstream import expected
from coordinator.testing.cluster.cluster import LocalCluster
from coordinator.transactional.options import RunOptions
from coordinator.trying.bolt_trial import run_bolt
from examples.clickstream import DAY_S, PAUSE_S, CountVisits, date_of, make_data, topology

MIDNIGHT = 20_455 * DAY_S
BEFORE, AFTER = "2026-01-01", "2026-01-02"


@pytest.mark.parametrize(("lines", "window", "group"), [(40, 1, 1), (90, 8, 3), (5000, 2, 64)])
def test_the_answers_are_those_of_a_plain_loop(tmp_path, lines, window, group):
    make_data(tmp_path, 700, days=3, seed=lines)
    answer = expected(tmp_path)
    with LocalCluster(seed=lines) as cluster:
        options = RunOptions(max_spout_pending=window, commit_group_max=group)
        run = cluster.submit(topology(f"{tmp_path}/*.json.gz", lines), options=options)
        run.run_until_idle()
        assert run.is_done
        assert {name: run.state(name) for name in answer} == answer
    assert len(answer["visits"]) >= 3
    assert sum(answer["visits"].values()) > sum(answer["visitors"].values())


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
