"""The page of one topology, from what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator.operating.ui.views.component_rows import FlowRate, FlowRates
from coordinator.operating.ui.views.topology_view import TopologyView, topology_view
from coordinator.operating.ui.views.words import Clock, Tone, rate, short, size, span
from state.records.durability import ServerDurability
from state.records.run_pulse import ComponentFigures, RunPulse, RunState
from state.records.topology_overview import TopologyOverview
from tests.support.dashboard.stored import DESCRIPTION, FIGURES, NOW, RUN, samples

CLOCK = Clock(NOW + 1)
PULSE = RunPulse(RUN, FIGURES, NOW, tuple(samples(60)))
SEEN = TopologyOverview(
    topology_id="words",
    at=NOW + 1,
    committed_txid=42,
    fence="1:ab",
    topology=DESCRIPTION,
    source_fingerprint="files:/data",
    durable={"fsync": 41},
    history_from=3,
    quarantined_count=2,
    dead_letters=7,
    pulse=PULSE,
    connected=1,
    gives=ServerDurability(has_append_file=True, appendfsync="everysec"),
)
RATES = {"lines": FlowRate(0.0, 12_500.0), "count": FlowRate(12_500.0, 250.0), "store": FlowRate(250.0, 0.0)}


def page(rates: Mapping[str, FlowRate] | None = None, **figures: Any) -> TopologyView:
    """The page of a topology whose run has reported these figures."""
    return topology_view(replace(SEEN, pulse=replace(PULSE, now=replace(FIGURES, **figures))), rates or {}, CLOCK)


def test_a_run_is_shown_with_its_figures_and_what_its_server_can_lose() -> None:
    shown = page()
    assert [(each.name, each.value, each.note) for each in shown.figures] == [
        ("committed", "42", "last txid"),
        ("transactions/s", "12.5", "last 10 s"),
        ("tuples/s", "12.5 k", "last 10 s"),
        ("commit lag", "0.4 s", "since the last commit"),
        ("input cut", "25%", ""),
        ("attempts failed", "1", "of 50, and 2 with them"),
    ]
    heading = shown.heading
    assert (heading.state, heading.tone, heading.story) == (
        *("running", Tone.GOOD),
        "on node7, process 4711, for 11 min 41 s",
    )
    assert (heading.alarm, heading.quarantined, heading.dead_letters) == ("", 2, 7)
    assert dict(page().stored) == {
        "power cut": "may take its last second or two of commits (appendfsync everysec)",
        "confirmed": "up to txid 41 at durability fsync",
        "history": "from txid 3",
        "source": "files:/data",
        "generation": "",
    }


def test_the_window_has_the_states_in_the_order_of_an_attempts_life() -> None:
    shown = page(window={"committing": 4, "resting": 1, "processing": 2}).window
    assert " ".join(map(" ".join, shown)) == "waiting 0 processing 2 processed 0 committing 4 resting 1"


def test_the_slowest_component_stands_first() -> None:
    shown = page().components
    assert [(row.name, row.busy, row.share, row.refused) for row in shown] == [
        *(("store", "3.0 s", "60%", "2"), ("count", "1.5 s", "30%", "0")),
        ("lines", "0.5 s", "10%", "0"),
    ]
    assert [row.rate for row in shown] == ["—", "—", "—"], "one look is not enough for a rate"
    assert [row.rate for row in page(RATES).components] == ["250", "12.5 k", "12.5 k"]


def test_failures_are_counted_by_reason_the_most_frequent_first() -> None:
    shown = page()
    assert [(row.kind, row.count) for row in shown.failures] == [("lower failed", "2"), ("worker lost", "1")]
    last = shown.last_failure
    assert last is not None
    assert (last.txid, last.kind, last.ago) == (17, "worker lost", "1 min 6 s ago")
    assert last.reason.startswith("an executor is gone")


def test_the_graph_has_totals_first_and_rates_then() -> None:
    first, then = (str(page(rates).graph) for rates in ({}, RATES))
    assert [each for each in ("40.0 k tuples", "20.0 k tuples") if each not in first] == []
    flows = ("12.5 k tuples/s", "250 tuples/s", "by shuffle · 12.5 k/s", "by fields word · 250/s")
    assert [each for each in flows if each not in then] == []


def test_a_run_that_has_ended_has_no_rates() -> None:
    shown = page(RATES, state=RunState.DONE)
    assert [each.name for each in shown.figures] == ["committed", "this run", "tuples", "input cut", "attempts failed"]
    assert shown.heading.story == "1.0 s ago, after 11 min 40 s, on node7, process 4711"
    assert {row.rate for row in shown.components} == {"—"}


def test_charts_say_what_they_cover() -> None:
    shown = page()
    assert [(chart.name, chart.now) for chart in shown.charts] == [
        *(("transactions/s", "12.5"), ("tuples/s", "12.5 k"), ("commit lag", "0.4 s"), ("in work", "9")),
        *(("cut to commit", "410 ms"), ("wave", "300 ms"), ("commit call", "2.1 ms"), ("committed", "42")),
    ]
    assert shown.charts_told == "22:12:21 to 22:13:20"
    older = replace(SEEN, pulse=replace(PULSE, samples=tuple(samples(1_000))))
    assert topology_view(older, {}, CLOCK).charts_told.endswith(", earlier runs included")


UNTOLD = replace(SEEN, pulse=None)


@pytest.mark.parametrize(
    ("seen", "state", "said"),
    [
        (UNTOLD, "running", "A run is connected and reports nothing about itself"),
        (replace(UNTOLD, connected=0), "not reported", "No run has reported anything"),
    ],
    ids=["connected", "gone"],
)
def test_what_was_never_told_is_said_to_be_unknown(seen: TopologyOverview, state: str, said: str) -> None:
    shown = topology_view(seen, {}, CLOCK)
    assert shown.heading.state == state
    assert shown.untold.startswith(said)
    assert [each.name for each in shown.figures] == ["committed"]
    assert (shown.charts, shown.components, shown.run) == ((), (), ())
    assert shown.graph is not None, "its description is stored by the run itself"
    assert shown.stored


@pytest.mark.parametrize(
    ("seen", "alarm"),
    [
        (replace(SEEN, is_dropping=True), "A drop was begun and not finished: run txbatch drop words again."),
        (
            replace(SEEN, pulse=replace(PULSE, seen_at=NOW - 60), connected=0),
            "The run was killed, or cannot reach this server. What it committed is safe; run it again to continue.",
        ),
        (replace(SEEN, pulse=replace(PULSE, now=replace(FIGURES, error="disk full"))), "disk full"),
    ],
    ids=["dropping", "silent", "failed"],
)
def test_what_somebody_has_to_look_at(seen: TopologyOverview, alarm: str) -> None:
    assert topology_view(seen, {}, CLOCK).heading.alarm == alarm


def test_a_description_that_cannot_be_read_has_no_graph() -> None:
    assert topology_view(replace(SEEN, topology="?"), {}, CLOCK).graph is None


def pulse(at: float, tuples: int, fence: str = "1:ab") -> RunPulse:
    components = {"count": ComponentFigures(tuples, tuples // 2)}
    return RunPulse(replace(RUN, fence=fence), replace(FIGURES, at=at, components=components), at)


def test_two_looks_at_one_run_make_a_rate_which_is_of_the_last_ten_seconds() -> None:
    rates = FlowRates()
    assert rates.of("words", pulse(10, 100)) == {}
    assert rates.of("words", pulse(10, 100)) == {}, "the run has reported nothing new"
    assert rates.of("words", pulse(12, 300)) == {"count": FlowRate(100.0, 50.0)}
    assert rates.of("words", pulse(14, 10, fence="2:cd")) == {}, "another run begins again"
    rates = FlowRates()
    for at in range(100):
        found = rates.of("words", pulse(at, at * at))
    assert found == {"count": FlowRate((99**2 - 89**2) / 10, (99**2 // 2 - 89**2 // 2) / 10)}


def test_topologies_whose_rates_are_remembered_are_bounded() -> None:
    rates = FlowRates()
    for number in range(150):
        rates.of(f"t{number}", pulse(10, 1))
    assert len(rates._seen) == 100


def test_figures_in_words() -> None:
    per_s = (0, 0.25, 12.5, 340, 12_300, 1_200_000)
    assert [rate(each) for each in per_s] == ["0.0", "0.25", "12.5", "340", "12.3 k", "1.20 M"]
    assert [short(each) for each in (0, 0.5, 12, 2_500, 1e7, 2e9)] == ["0", "0.5", "12", "2.5 k", "10 M", "2 G"]
    assert [span(each) for each in (0, 0.005, 1.5, 120)] == ["0 s", "5 ms", "1.5 s", "2 min"]
    assert [size(each) for each in (900, 21_774, 1_300_000)] == ["900 B", "21.8 kB", "1.3 MB"]
