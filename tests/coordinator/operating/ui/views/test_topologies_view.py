"""The list of topologies, from what a server holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.operating.ui.views.topologies_view import topologies_view
from coordinator.operating.ui.views.words import Clock
from state.records.run_pulse import RunFigures, RunPulse, RunState
from state.records.topology_overview import ListedTopology
from tests.support.approved import approved
from tests.support.dashboard.drawn import told
from tests.support.dashboard.stored import FIGURES, MARKUP, NOW, RUN

CLOCK = Clock(NOW + 1)


def listed(now: RunFigures = FIGURES, seen_at: float = NOW, *, connected: int = 0) -> ListedTopology:
    return ListedTopology("words", "42", "1:ab", pulse=RunPulse(RUN, now, seen_at), connected=connected)


CASES = {
    "running": listed(),
    "done": listed(replace(FIGURES, state=RunState.DONE)),
    "failed": listed(replace(FIGURES, state=RunState.FAILED, error="disk full\n")),
    "silent": listed(seen_at=NOW - 99),
    "silent and connected": listed(seen_at=NOW - 99, connected=1),
    "without executors": listed(replace(FIGURES, state=RunState.WITHOUT_EXECUTORS, cluster="0 registered")),
    "set aside": listed(replace(FIGURES, quarantined=2)),
    "without a pulse": ListedTopology("words", "42"),
    "without a pulse, connected": ListedTopology("words", "42", connected=1),
    "unreadable": ListedTopology("words", fault="WRONGTYPE"),
    "being dropped": ListedTopology("words", "42", is_dropping=True),
}


def test_a_list_says_what_each_run_is_doing() -> None:
    said = []
    for name, found in CASES.items():
        said += [f"== {name}", *told(topologies_view([found], CLOCK))]
    approved("\n".join(said), "dashboard-list")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "0 topologies"),
        ([listed()], "1 topology · 1 running"),
        ([listed(), listed(seen_at=0.0)], "2 topologies · 1 running · 1 in trouble"),
    ],
    ids=["none", "one", "two"],
)
def test_the_summary_counts(found: list[ListedTopology], said: str) -> None:
    assert topologies_view(found, CLOCK).summary == said


def test_text_that_is_not_ours_is_one_line_of_bounded_length() -> None:
    pulse = RunPulse(replace(RUN, host=MARKUP * 40), replace(FIGURES, state=RunState.FAILED, error="x" * 9_999), NOW)
    (shown,) = topologies_view([ListedTopology("words", "42", "1:ab", pulse=pulse)], CLOCK).rows
    assert len(shown.where) < 120
    assert "\x1b" not in shown.where
    assert len(shown.note) < 450
