"""The list of topologies, from what a server holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.operating.ui.views.topologies_view import TopologyRow, topologies_view
from coordinator.operating.ui.views.words import Clock, Tone
from state.records.run_pulse import RunFigures, RunPulse, RunState
from state.records.topology_overview import ListedTopology
from tests.support.dashboard.stored import FIGURES, MARKUP, NOW, RUN

CLOCK = Clock(NOW + 1)


def listed(now: RunFigures = FIGURES, seen_at: float = NOW, *, connected: int = 0) -> ListedTopology:
    return ListedTopology("words", "42", "1:ab", pulse=RunPulse(RUN, now, seen_at), connected=connected)


def row(found: ListedTopology) -> TopologyRow:
    (only,) = topologies_view([found], CLOCK).rows
    return only


def test_a_running_one_has_rates_lag_and_place_and_another_none() -> None:
    shown = row(listed())
    assert (shown.state, shown.tone, shown.committed, shown.lag) == ("running", Tone.GOOD, "42", "0.4 s")
    assert (shown.transactions, shown.tuples, shown.fraction, shown.where) == ("12.5", "12.5 k", 0.25, "node7:4711")
    assert shown.since is not None
    assert (shown.since_what, shown.since.ago) == ("began", "11 min 41 s ago")
    shown = row(listed(replace(FIGURES, state=RunState.DONE)))
    assert (shown.transactions, shown.tuples, shown.lag) == ("—", "—", "—")


CASES = {
    "done": (listed(replace(FIGURES, state=RunState.DONE)), "done", Tone.CALM, "", "ended"),
    "failed": (
        listed(replace(FIGURES, state=RunState.FAILED, error="disk full\n")),
        *("failed", Tone.BAD, "disk full\\n", "ended"),
    ),
    "silent": (
        listed(seen_at=NOW - 99),
        *("silent", Tone.BAD, "for 1 min 40 s: it was killed, or cannot reach this server", "last heard"),
    ),
    "connected": (listed(seen_at=NOW - 99, connected=1), "running", Tone.GOOD, "", "began"),
    "without executors": (
        listed(replace(FIGURES, state=RunState.WITHOUT_EXECUTORS, cluster="0 registered")),
        *("waiting for executors", Tone.WAITS, "0 registered", "began"),
    ),
    "set aside": (listed(replace(FIGURES, quarantined=2)), *("running", Tone.GOOD, "2 batches set aside", "began")),
    "without a pulse": (ListedTopology("words", "42"), "not reported", Tone.DIM, "no run has reported anything", ""),
    "without a pulse, connected": (
        ListedTopology("words", "42", connected=1),
        *("running", Tone.GOOD, "it reports nothing about itself", ""),
    ),
    "unreadable": (ListedTopology("words", fault="WRONGTYPE"), "unreadable", Tone.BAD, "WRONGTYPE", ""),
    "being dropped": (
        ListedTopology("words", "42", is_dropping=True),
        *("being dropped", Tone.WAITS),
        "its drop was not finished: run txbatch drop words again, unless a drop is running",
        "",
    ),
}


@pytest.mark.parametrize(("found", "state", "tone", "note", "since"), CASES.values(), ids=CASES.keys())
def test_what_a_run_is_doing(found: ListedTopology, state: str, tone: Tone, note: str, since: str) -> None:
    shown = row(found)
    assert (shown.state, shown.tone, shown.note, shown.since_what) == (state, tone, note, since)


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
    shown = row(ListedTopology("words", "42", "1:ab", pulse=pulse))
    assert len(shown.where) < 120
    assert "\x1b" not in shown.where
    assert len(shown.note) < 450
