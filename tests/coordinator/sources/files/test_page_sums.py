"""Sums over events are the same from every format: those that were counted as the events were made."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator import LocalCluster
from tests.support.sources.page_events import pattern, write_events
from tests.support.topologies.page_sums import topology


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_pages_revenue_and_visitors_are_exact(tmp_path, form):
    truth = write_events(tmp_path, 1500, seed=7)
    with LocalCluster() as cluster:
        run = cluster.submit(topology(pattern(tmp_path, form), form, rows="200"))
        run.run_until_idle()
        assert run.is_done
        assert Counter(run.state("views")) == truth.views
        assert Counter(run.state("revenue_cents")) == truth.cents
        assert set(run.state("users")) == truth.users


def test_csv_is_read_too_and_a_followed_folder_has_no_end(tmp_path):
    (tmp_path / "a.csv").write_text('page,user,price\n"/a,b",u1,1.50\n/c,u1,\n')
    with LocalCluster() as cluster:
        run = cluster.submit(topology(str(tmp_path / "*.csv"), "csv", follow="yes"))
        run.run_until_idle()
        assert not run.is_done
        assert run.state("revenue_cents") == {"/a,b": 150, "/c": 0}
        assert run.state("users") == {"u1"}
        run.drain()
        run.run_until_idle()
        assert run.is_done
