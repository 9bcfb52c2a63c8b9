"""History whose time has passed before it is processed, as docs/state.md warns of it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from coordinator import FixedBatchesSpout, LocalCluster, RunOptions, TransactionalTopologyBuilder
from state import HashState
from tests.support.runs.collecting import Collecting

OLD, NEW = date(2001, 2, 3), date(2201, 2, 3)
KEPT_FROM = date(2200, 1, 1)


class CountViews(Collecting):
    """Counts views a day, in days that expire, in days that stay until a date at least, and without an end."""

    by_day = HashState("by_day").per("day", date, expire_at=lambda day: day + timedelta(days=90))
    kept = HashState("kept").per("day", date, expire_at=lambda day: max(day + timedelta(days=90), KEPT_FROM))
    total = HashState("total")
    found = HashState("found")

    def finish_batch(self) -> None:
        for day in self.column("day"):
            self.found.increment("views", self.by_day[day].get("views") or 0)
            self.by_day[day].increment("views")
            self.kept[day].increment("views")
            self.total.increment(day.isoformat())


def run_over(*days: date, commit_group_max: int = 1) -> Any:
    builder = TransactionalTopologyBuilder("views", "views", FixedBatchesSpout([[[day]] for day in days], ["day"]))
    builder.set_committer_bolt("count", CountViews()).global_grouping("views")
    with LocalCluster(seed=1) as cluster:
        options = RunOptions(max_spout_pending=len(days), commit_group_max=commit_group_max)
        run = cluster.submit(builder.build(), options=options)
        run.run_until_idle()
        return run.statistics, {name: run.state(name) for name in ("by_day", "kept", "total", "found")}


def test_old_parts_are_committed_and_gone_at_once_and_the_run_is_done() -> None:
    statistics, states = run_over(OLD, NEW, OLD)
    assert (statistics.committed, statistics.failed_attempts) == (3, 0)
    assert states["by_day"] == {NEW: {"views": 1}}
    assert states["total"] == {str(OLD): 2, str(NEW): 1}


def test_a_date_before_which_nothing_goes_keeps_old_parts() -> None:
    assert run_over(OLD, NEW, OLD)[1]["kept"] == {OLD: {"views": 2}, NEW: {"views": 1}}


@pytest.mark.parametrize(
    ("day", "group", "found"), [(NEW, 1, 3), (NEW, 3, 3), (OLD, 1, 0)], ids=["alone", "grouped", "old"]
)
def test_reads_of_a_part_find_what_was_written_unless_its_time_has_passed(day: date, group: int, found: int) -> None:
    assert run_over(day, day, day, commit_group_max=group)[1]["found"] == {"views": found}
