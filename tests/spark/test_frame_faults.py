"""A frame that is lost, doubled, misfiled or altered on its way fails its attempt, and nothing wrong is stored."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

import pytest

from coordinated_bolt.transport.frames import FrameKind
from tests.spark.conftest import Cluster
from tests.support.spark.bolts import exact_counts, exact_sums, numbers_topology
from tests.support.spark.faults import OneFrame, tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.redis]

TRANSACTIONS = 8
HIT = 3
REPLAYED = re.compile(r"attempt (\S+) failed and is replayed: (.*)", re.DOTALL)


def replayed(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """(attempt, reason) of every attempt the coordinator says it replays."""
    found = (REPLAYED.match(record.getMessage()) for record in caplog.records if record.name == "txbatch")
    return [(match[1], match[2]) for match in found if match]


def run_with(cluster: Cluster, caplog: pytest.LogCaptureFixture, component_id: str, *, early_commit: bool, **fault):
    topology = numbers_topology(TRANSACTIONS, is_chained=False)
    one_frame = OneFrame(cluster.notes / "hit", tasks_of(topology, component_id), HIT, **fault)
    with caplog.at_level(logging.INFO, logger="txbatch"):
        statistics = cluster.run(
            topology, frame_fault=one_frame, max_spout_pending=2 * TRANSACTIONS, early_commit=early_commit
        )
    return statistics, one_frame.marker.read_text(encoding="utf-8")


PLACES = {
    "bolt": ("work", FrameKind.REGULAR),
    "bolt-report": ("work", FrameKind.COORD),
    "committer": ("store", FrameKind.REGULAR),
    "committer-report": ("store", FrameKind.COORD),
    "acker": ("__acker", FrameKind.ACK),
}
CHANGES = ("drop", "double", "swap", "swap_txid", "alter")
HARMLESS = {("bolt-report", "double"), ("committer-report", "double")}
"""A report that arrives twice is compared with itself, not added."""


QUICK = {("bolt", "alter"), ("committer", "drop"), ("committer-report", "double"), ("acker", "drop")}
"""A fault of each place; the others are like them, and are tried in process each time."""


def _marks(place: str, change: str) -> Sequence[pytest.MarkDecorator]:
    return () if (place, change) in QUICK else (pytest.mark.nightly,)


def in_each_mode(faults: set[tuple[str, str]]) -> list[Any]:
    """Cases of (place, change, early_commit).

    Committers read in the wave's own job or in a second one, which is another way for frames; all others always read
    in the first, so one mode is enough for them here. Whole runs in process try all of them in both modes.
    """
    modes = [("one job", True), ("two jobs", False)]
    return [
        pytest.param(place, change, early_commit, id=f"{place}-{change}-{mode}", marks=_marks(place, change))
        for place, change in sorted(faults)
        for mode, early_commit in modes
        if early_commit or place.startswith("committer")
    ]


@pytest.mark.parametrize(
    ("place", "change", "early_commit"), in_each_mode({(p, c) for p in PLACES for c in CHANGES} - HARMLESS)
)
def test_exactly_the_attempt_of_a_faulty_frame_fails_and_the_result_is_exact(
    cluster, caplog, place, change, early_commit
):
    component_id, kind = PLACES[place]
    statistics, hit = run_with(cluster, caplog, component_id, early_commit=early_commit, kind=kind, change=change)

    assert [attempt for attempt, _ in replayed(caplog)] == [hit]
    assert statistics.failed_attempts == TRANSACTIONS - HIT + 1  # it, and all above it, which are done anew
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
    assert cluster.hash("{numbers}:sums") == exact_sums(TRANSACTIONS)


@pytest.mark.parametrize(("place", "change", "early_commit"), in_each_mode(HARMLESS))
def test_a_report_that_comes_twice_is_compared_and_fails_nothing(cluster, caplog, place, change, early_commit):
    component_id, kind = PLACES[place]
    statistics, hit = run_with(cluster, caplog, component_id, early_commit=early_commit, kind=kind, change=change)

    assert hit.startswith(f"{HIT}:")
    assert (statistics.failed_attempts, replayed(caplog)) == (0, [])
    assert cluster.hash("{numbers}:counts") == exact_counts(TRANSACTIONS)
