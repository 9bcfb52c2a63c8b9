"""The page of one topology, from what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from coordinator.operating.ui.views.component_rows import FlowRate, FlowRates
from coordinator.operating.ui.views.topology_view import TopologyView, topology_view
from coordinator.operating.ui.views.words import Clock, rate, short, size, span
from state.records.durability import ServerDurability
from state.records.run_pulse import ComponentFigures, RunPulse, RunState
from state.records.topology_overview import TopologyOverview
from tests.support.approved import approved
from tests.support.dashboard.drawn import told
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


UNTOLD = replace(SEEN, pulse=None)
SILENT = replace(SEEN, pulse=replace(PULSE, seen_at=NOW - 60), connected=0)
VIEWS = {
    "running": page(),
    "running, at the second look": page(RATES),
    "resting": page(window={"committing": 4, "resting": 1, "processing": 2}),
    "done": page(RATES, state=RunState.DONE),
    "failed": page(error="disk full"),
    "of several runs": topology_view(replace(SEEN, pulse=replace(PULSE, samples=tuple(samples(1_000)))), {}, CLOCK),
    "untold and connected": topology_view(UNTOLD, {}, CLOCK),
    "untold": topology_view(replace(UNTOLD, connected=0), {}, CLOCK),
    "being dropped": topology_view(replace(SEEN, is_dropping=True), {}, CLOCK),
    "silent": topology_view(SILENT, {}, CLOCK),
    "without a description": topology_view(replace(SEEN, topology="?"), {}, CLOCK),
}


def test_a_topology_is_shown_with_its_figures_its_failures_and_what_somebody_has_to_look_at() -> None:
    said = []
    for name, view in VIEWS.items():
        said += [f"== {name}", *told(view)]
    approved("\n".join(said), "dashboard-topologies")


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
