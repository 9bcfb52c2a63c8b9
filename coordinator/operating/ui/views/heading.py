"""The heading of every page about one topology."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.operating.ui.views import words
from coordinator.operating.ui.views.words import Clock, Tone
from coordinator.watching.durations import duration
from state.records.run_pulse import Standing
from state.records.topology_overview import TopologyOverview


@dataclass(frozen=True, slots=True)
class Heading:
    """A topology's name, and what its run is doing.

    Attributes:
        topology_id: its id.
        state, tone: what its run is doing.
        story: where it runs and since when, or how it ended.
        alarm: what needs attention; "" for nothing.
        quarantined, dead_letters: how many there are, for the links.
    """

    topology_id: str
    state: str
    tone: Tone
    story: str
    alarm: str = ""
    quarantined: int = 0
    dead_letters: int = 0


def heading_of(seen: TopologyOverview, clock: Clock) -> Heading:
    """Returns the heading of a topology's pages."""
    state, tone = words.state_of_run(seen.pulse, seen.standing)
    if seen.is_dropping:
        state, tone = "being dropped", Tone.WAITS
    return Heading(
        words.name(seen.topology_id),
        state,
        tone,
        _story(seen, clock),
        _alarm(seen),
        seen.quarantined,
        seen.dead_letters,
    )


def _story(seen: TopologyOverview, clock: Clock) -> str:
    pulse, standing = seen.pulse, seen.standing
    if pulse is None:
        return "connected" if standing is Standing.RUNNING else "no run is known"
    where = f"on {words.name(pulse.run.host)}, process {pulse.run.pid}"
    if standing is Standing.RUNNING:
        return f"{where}, for {duration(clock.now - pulse.run.started_at)}"
    if standing is Standing.SILENT:
        return f"for {duration(clock.now - pulse.seen_at)}, last {where}"
    return f"{clock.since(pulse.now.at)}, after {duration(pulse.now.at - pulse.run.started_at)}, {where}"


def _alarm(seen: TopologyOverview) -> str:
    if seen.is_dropping:
        return f"A drop was begun and not finished: run txbatch drop {words.name(seen.topology_id)} again."
    if seen.committed_txid is None:
        return f"What is stored cannot be read: run txbatch verify {words.name(seen.topology_id)}."
    if seen.standing is Standing.SILENT:
        return "The run was killed, or cannot reach this server. What it committed is safe; run it again to continue."
    return "" if seen.pulse is None else words.reason(seen.pulse.now.error)
